"""Disks that are slow rather than hung, and disks that return errors on one log dir alone."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.integration.observe.conftest import HANG_SECONDS, HangingDisk, MakeDisk, MakeWatch, Watch
from tests.integration.waiting import eventually

MakeHangingDisk = Callable[..., HangingDisk]


def statuses(watch: Watch, seconds: float) -> set[str]:
    """Return the statuses of its first volume over a time."""
    until, seen = time.monotonic() + seconds, set()
    while time.monotonic() < until:
        seen.add(str(watch.volumes[0].status))
        time.sleep(0.02)
    return seen


@pytest.mark.accepts("F42")
def test_a_disk_that_answers_too_late_each_time_is_not_taken_for_well_in_between(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    slow, healthy = make_hanging_disk("1"), make_disk("2")
    watch = make_watch(slow.mount_point, healthy.log_dir())
    slow.slow(1.5 * HANG_SECONDS)
    eventually(lambda: watch.volumes[0].status == "failed", "the first late answer is missed")
    assert statuses(watch, 3.2 * HANG_SECONDS) == {"failed"}, "no flapping from answer to answer"
    assert "no answer from the file system" in watch.reason()
    assert watch.volumes[1].status == "ok"
    slow.slow(0)
    eventually(lambda: watch.volumes[0].status == "ok", "it is quick again")


@pytest.mark.long
@pytest.mark.accepts("F42")
def test_a_disk_that_is_slow_within_the_limit_stays_well_and_its_figures_come(
    make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch
) -> None:
    slow = make_hanging_disk("1")
    watch = make_watch(slow.mount_point)
    slow.slow(0.3 * HANG_SECONDS)
    assert statuses(watch, 2 * HANG_SECONDS) == {"ok"}
    slow.leave_free(10)
    eventually(lambda: watch.volume.consumed_bytes == 990 * 4096, "what is written there is seen")


@pytest.mark.accepts("F43")
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("statistics", "statvfs failed: Input/output error (EIO)"),
        pytest.param("entries", "can't be listed", marks=pytest.mark.long),
    ],
)
def test_errors_of_one_log_dir_fail_its_volume_alone(
    make_disk: MakeDisk, make_hanging_disk: MakeHangingDisk, make_watch: MakeWatch, what: str, reason: str
) -> None:
    broken, healthy = make_hanging_disk("1"), make_disk("2")
    watch = make_watch(broken.mount_point, healthy.log_dir())
    known = watch.volumes[0]
    broken.fail(what)
    eventually(lambda: reason in watch.reason(), "it is named")
    assert [volume.status for volume in watch.volumes] == ["failed", "ok"]
    assert watch.volumes[0].consumed_bytes == known.consumed_bytes, "never as free"
    assert watch.reason(1) == ""
    broken.fail("nothing")
    eventually(lambda: watch.volumes[0].status == "ok", "it can be read again")
