"""A watch of real directories: its findings and memory, and the comparison with the last report."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.disks.band import Band
from kquota.disks.identity import VolumeIdentity
from kquota.disks.observation import VolumeObservation
from kquota.disks.probe import LogDirLook
from kquota.disks.server_properties import BrokerProperties, parse_broker_properties
from kquota.disks.volume_watch import Recorded, VolumeWatch
from kquota.settings.model import LimitsSection
from tests.integration.waiting import eventually

NOTHING = Recorded({}, {})
LAST = LogDirLook("", capacity_bytes=100, available_bytes=3)


@pytest.fixture
def properties(tmp_path: Path) -> BrokerProperties:
    log_dirs = [tmp_path / "a", tmp_path / "b"]
    for log_dir in log_dirs:
        log_dir.mkdir()
        (log_dir / "meta.properties").touch()
    text = f"node.id=1\nlog.dirs={','.join(map(str, log_dirs))}\n"
    return parse_broker_properties(text.encode(), Path("server.properties"))


@pytest.fixture
def watch(properties: BrokerProperties) -> Iterator[VolumeWatch]:
    with VolumeWatch(properties) as watch:
        assert watch.wait_for_samples(60)
        yield watch


def log_dirs_of(watch: VolumeWatch) -> tuple[str, ...]:
    return tuple(str(path) for path in watch.properties.directories)


def observed(watch: VolumeWatch) -> VolumeObservation:
    (volume,) = watch.observe().volumes
    return volume


def elsewhere(volume: VolumeObservation) -> VolumeIdentity:
    """The report about a volume that was mounted elsewhere and is gone."""
    return VolumeIdentity("an id", "/dev/gone", "/mnt/gone", "", "/dev/gone", None)


def test_directories_of_one_file_system_are_one_volume_with_its_figures(
    watch: VolumeWatch, tmp_path: Path
) -> None:
    volume = observed(watch)
    figures = os.statvfs(tmp_path)
    assert (volume.status, volume.log_dirs) == ("ok", log_dirs_of(watch))
    assert volume.capacity_bytes == figures.f_blocks * figures.f_frsize
    assert volume.consumed_bytes is not None
    free = volume.capacity_bytes - volume.consumed_bytes
    assert free == pytest.approx(figures.f_bavail * figures.f_frsize, rel=0.1)
    assert os.path.ismount(volume.mount_point)
    assert tmp_path.is_relative_to(volume.mount_point)


def test_only_a_log_dir_within_its_band_can_wake(watch: VolumeWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    capacity = observed(watch).capacity_bytes or 0
    within, at_its_end = log_dirs_of(watch)
    asked: list[tuple[Mapping[str, Band], frozenset[str]]] = []
    monkeypatch.setattr(watch.sampler, "wake_at", lambda *what: asked.append(what))
    bands = {within: (-1, capacity), at_its_end: (capacity - 1, capacity), "/elsewhere": (-1, capacity)}
    watch.wake_at(bands)
    watch.wake_at(bands, frozenset({at_its_end}))
    assert asked == [({within: (-1, capacity)}, frozenset(names)) for names in ([], [at_its_end])]


def test_the_topics_of_a_volume_are_those_of_all_its_log_dirs(watch: VolumeWatch) -> None:
    first, second = (Path(log_dir) for log_dir in log_dirs_of(watch))
    for partition in (first / "b-0", first / "c-0", second / "a-0", second / "b-1"):
        partition.mkdir()

    def named(*log_dirs: Path) -> tuple[str, ...] | None:
        topics = observed(watch).topics
        watch.wake_at({}, frozenset(map(str, log_dirs)))
        return topics

    assert observed(watch).topics is None
    eventually(lambda: watch._looks[str(first)].topics or named(first), "the first log dir is listed")
    assert named(first) is None, "those of the other log dir are not known"
    eventually(lambda: named(first, second) == ("a", "b", "c"), "both are")


def test_topics_are_waited_for_until_those_of_every_log_dir_are_known_or_the_time_is_over(
    watch: VolumeWatch,
) -> None:
    first, second = (Path(log_dir) for log_dir in log_dirs_of(watch))
    (first / "a-0").mkdir()
    (second / "-future").mkdir()
    watch.wait_for_topics(0.0)
    assert watch.sampler.latest()[str(first)].topics is None
    begun = time.monotonic()
    watch.wait_for_topics(0.5)
    assert time.monotonic() - begun >= 0.5
    (second / "-future").rename(second / "b-0")
    watch.wait_for_topics(60)
    assert observed(watch).topics == ("a", "b")
    assert time.monotonic() - begun < 50


def test_before_the_first_sample_nothing_is_known(properties: BrokerProperties) -> None:
    for _ in range(20):  # on a busy machine the first sample may come before this test looks
        with closing(VolumeWatch(properties)) as watch:
            states = {volume.status for volume in watch.observe().volumes}
            if not watch.wait_for_samples(0):
                break
    assert states == {"failed"}


def test_a_log_dir_is_remembered_once_it_was_compared_with_the_last_report(watch: VolumeWatch) -> None:
    volume = observed(watch)
    assert watch.remembered == {}, "it may be on the wrong mount"
    watch.recall(NOTHING)
    assert watch.remembered.keys() == set(log_dirs_of(watch))
    assert {one.volume_id for one in watch.remembered.values()} == {volume.volume_id}


def test_what_an_earlier_run_remembered_counts_at_once_and_only_of_log_dirs_that_are_left(
    watch: VolumeWatch,
) -> None:
    present = observed(watch)
    watch.recall(NOTHING)
    first, second = log_dirs_of(watch)
    gone = elsewhere(present)
    earlier = {first: gone, "/no/log/dir": gone}
    with VolumeWatch(watch.properties, remembered=earlier) as again:
        assert again.wait_for_samples(60)
        volumes = again.observe().volumes
        assert [(volume.name, volume.status) for volume in volumes] == [
            ("/dev/gone", "failed"),
            (present.name, "ok"),
        ]
        assert again.remembered == {first: gone}
        again.recall(Recorded({first: replace(gone, name="another")}, {}))
        assert again.remembered[first] == gone, "the state file knows better than the report"
        assert second in again.remembered


def test_a_log_dir_that_was_reported_on_another_volume_has_lost_its_mount(watch: VolumeWatch) -> None:
    present = observed(watch)
    first, _ = log_dirs_of(watch)
    gone = elsewhere(present)
    watch.recall(
        Recorded(
            {first: gone, "/no/log/dir": gone},
            {"an id": LAST},
        )
    )
    lost, found = watch.observe().volumes
    assert (lost.name, lost.status, lost.log_dirs) == ("/dev/gone", "failed", (first,))
    assert (lost.capacity_bytes, lost.consumed_bytes) == (100, 97), "the last figures count"
    assert (found.status, found.log_dirs) == ("ok", log_dirs_of(watch)[1:])
    assert watch.remembered[first] == gone
    watch.accept(first)
    accepted = observed(watch)
    assert (accepted.status, accepted.volume_id) == ("ok", present.volume_id)
    assert watch.remembered[first].volume_id == present.volume_id


def test_all_log_dirs_can_be_accepted_together(watch: VolumeWatch) -> None:
    gone = elsewhere(observed(watch))
    watch.recall(Recorded(dict.fromkeys(log_dirs_of(watch), gone), {}))
    assert observed(watch).status == "failed"
    watch.accept()
    assert observed(watch).status == "ok"
    assert watch.remembered.keys() == set(log_dirs_of(watch))


def test_figures_that_were_seen_count_before_those_of_the_report(watch: VolumeWatch) -> None:
    present = observed(watch)
    watch.recall(Recorded({}, {present.volume_id: LAST}))
    watch.sampler.close()
    assert observed(watch).capacity_bytes == present.capacity_bytes


def test_a_log_dir_that_was_on_the_root_file_system_may_have_got_a_disk(watch: VolumeWatch) -> None:
    present = observed(watch)
    root = replace(elsewhere(present), mount_point="/")
    watch.recall(Recorded(dict.fromkeys(log_dirs_of(watch), root), {}))
    assert observed(watch).status == "ok"


def test_a_log_dir_that_is_missing_has_answered_and_failed(properties: BrokerProperties) -> None:
    first, second = properties.directories
    (Path(first) / "meta.properties").unlink()
    Path(first).rmdir()
    with VolumeWatch(properties) as watch:
        assert watch.wait_for_samples(60)
        failed = [volume for volume in watch.observe().volumes if volume.status == "failed"]
        assert [volume.log_dirs for volume in failed] in ([(str(first),)], [(str(first), str(second))])


def test_the_volume_that_a_path_of_the_limits_is_for_is_remembered(
    properties: BrokerProperties, tmp_path: Path
) -> None:
    limits = LimitsSection.model_validate({"volumes": {str(tmp_path): {}}})
    earlier = {str(tmp_path): ("x",), "/not/configured": ("y",)}
    with VolumeWatch(properties, limits=limits, bound=earlier) as watch:
        assert watch.bound == {str(tmp_path): ("x",)}
        assert watch.wait_for_samples(60)
        volume = observed(watch)
        assert watch.bound == {str(tmp_path): (volume.volume_id,)}
        assert volume.limits_path == str(tmp_path)
