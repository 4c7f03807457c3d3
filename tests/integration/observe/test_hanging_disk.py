"""A disk that never answers delays no other one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from tests.integration.observe.conftest import HANG_SECONDS, HangingDisk, MakeDisk, MakeWatch
from tests.integration.waiting import eventually

MakeHangingDisk = Callable[..., HangingDisk]


@pytest.mark.accepts("A28", "F4")
def test_a_hung_volume_fails_while_its_neighbours_are_sampled_on(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    hanging, healthy = make_hanging_disk("1"), make_disk("2")
    watch = make_watch(hanging.mount_point, healthy.log_dir())
    known = watch.volumes[0]
    assert (known.status, known.capacity_bytes, known.consumed_bytes) == ("ok", 4_096_000, 1_638_400)
    hanging.hang()
    look_seconds: list[float] = []

    def hangs() -> bool:
        started = time.monotonic()
        status = watch.volumes[0].status
        look_seconds.append(time.monotonic() - started)
        return status == "failed"

    eventually(hangs)
    assert watch.reason() == f"{hanging.mount_point}: no answer from the file system for {HANG_SECONDS:g} s"
    # A single one may wait for the machine; all are asked while the disk hangs.
    assert median(look_seconds) < HANG_SECONDS
    hung = watch.volumes[0]
    assert (hung.capacity_bytes, hung.consumed_bytes) == (known.capacity_bytes, known.consumed_bytes)
    sampled = watch.volumes[1].sampled_at_monotonic or 0
    eventually(lambda: (watch.volumes[1].sampled_at_monotonic or 0) > sampled + HANG_SECONDS)
    assert watch.volumes[1].status == "ok"

    # The process is held by the kernel: closing abandons it, and it is gone once the disk lets go.
    started = time.monotonic()
    watch.watch.sampler.close()
    assert time.monotonic() - started < 10 * HANG_SECONDS
    assert watch.watch.sampler.abandoned == 1
    hanging.die()
    eventually(lambda: watch.watch.sampler.abandoned == 0)


@pytest.mark.accepts("F4")
def test_a_volume_that_hangs_from_the_start_is_named_by_its_mount(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    hanging, healthy = make_hanging_disk("1", "hang"), make_disk("2")
    watch = make_watch(hanging.mount_point, healthy.log_dir(), ready=False)
    eventually(lambda: "no answer" in watch.reason() and watch.volumes[1].status == "ok")
    assert watch.volumes[0].mount_point == str(hanging.mount_point)
    assert watch.volumes[0].capacity_bytes is None


@pytest.mark.accepts("F4")
def test_a_volume_recovers_when_the_hung_disk_is_replaced_on_its_mount_point(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    hanging, disk = make_hanging_disk("1"), make_disk("2")
    watch = make_watch(hanging.mount_point)
    hanging.hang()
    eventually(lambda: "no answer" in watch.reason())
    disk.mount_onto(hanging.mount_point)
    eventually(lambda: "is gone" in watch.reason() and disk.uuid in watch.reason())
    watch.watch.accept()
    assert (watch.volume.status, watch.volume.volume_id) == ("ok", disk.uuid)
    assert watch.watch.sampler.abandoned == 1


@pytest.mark.accepts("F4")
def test_a_mount_elsewhere_neither_ends_the_failure_nor_costs_a_process(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    hanging = make_hanging_disk("1")
    watch = make_watch(hanging.mount_point)
    hanging.hang()
    eventually(lambda: "no answer" in watch.reason())
    process_id = watch.watch.sampler.process_id
    elsewhere = make_disk("2")
    assert "no answer" in watch.reason()
    elsewhere.unmount_lazily()
    assert "no answer" in watch.reason()
    assert watch.watch.sampler.process_id == process_id
    # Nor does a new process turn what hangs into something fine while it waits in its turn.
    watch.watch.sampler.replace()
    deadline = time.monotonic() + 2 * HANG_SECONDS
    while time.monotonic() < deadline:
        assert "no answer" in watch.reason()
        time.sleep(0.05)


@pytest.mark.accepts("F4")
def test_topics_of_a_disk_whose_listing_hangs_are_not_known_and_those_of_its_neighbour_are(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    hanging, healthy = make_hanging_disk("1"), make_disk("2").log_dir()
    (healthy / "a-0").mkdir()
    watch = make_watch(hanging.mount_point, healthy)
    look_seconds: list[float] = []

    def topics() -> list[tuple[str, ...] | None]:
        started = time.monotonic()
        found = [volume.topics for volume in watch.volumes]
        look_seconds.append(time.monotonic() - started)
        watch.watch.wake_at({}, frozenset(map(str, (hanging.mount_point, healthy))))
        return found

    eventually(lambda: topics() == [(), ("a",)], "both are known")
    hanging.hang_when_listed()
    look_seconds.clear()
    eventually(lambda: topics() == [None, ("a",)], "those of the hanging disk are not")
    (healthy / "b-0").mkdir()
    eventually(lambda: topics() == [None, ("a", "b")], "the neighbour is listed on")
    assert median(look_seconds) < HANG_SECONDS


@pytest.mark.accepts("F17")
def test_a_dead_server_is_an_error_with_its_name(
    make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    hanging = make_hanging_disk("1")
    watch = make_watch(hanging.mount_point)
    hanging.die()
    eventually(lambda: "ENOTCONN" in watch.reason())
    assert watch.volume.capacity_bytes == 4_096_000


def test_only_so_many_processes_are_left_behind_and_the_last_one_goes_on(
    make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch, tmp_path: Path
) -> None:
    hanging = make_hanging_disk("1", "hang")
    watch = make_watch(hanging.mount_point, tmp_path, ready=False)
    sampler = watch.watch.sampler

    def second_is_sampled_after(begin: float) -> bool:
        # It comes second: its first sample shows that the first log dir holds a thread of this process.
        return (sampler.latest()[str(tmp_path)].sampled_at_monotonic or 0) > begin

    begin = 0.0
    for abandoned in range(1, 4):
        eventually(lambda: second_is_sampled_after(begin))  # noqa: B023 - called at once
        sampler.replace()
        begin = time.monotonic()
        assert sampler.abandoned == abandoned
    eventually(lambda: second_is_sampled_after(begin))
    last = sampler.process_id
    sampler.replace()
    assert sampler.process_id == last
    eventually(lambda: watch.volumes[1].status == "ok")
    hanging.die()
    eventually(lambda: sampler.abandoned == 0)
