"""The steps of a watch, on looks and mount tables that the tests make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.disks import volume_watch
from kquota.disks.identity import VolumeIdentity
from kquota.disks.mountinfo import Mount, MountTable, parse_mountinfo
from kquota.disks.observation import VolumeObservation
from kquota.disks.probe import LogDirLook
from kquota.disks.server_properties import parse_broker_properties
from kquota.disks.volume_watch import Recorded, VolumeWatch
from tests.unit.disks.test_volumes import UUID_1, UUID_2, look

LOG_DIR = "/data/1/k"
ROOT = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
DISK = "11 1 8:17 / /data/1 rw - xfs /dev/sdb1 rw\n"
COVERED = DISK + "17 11 8:49 / /data/1 rw - xfs /dev/sdd1 rw\n"
HANGS = replace(look(LOG_DIR, 11), waiting_seconds=4.0)
HANGS_UNOPENED = replace(look(LOG_DIR, 0), waiting_seconds=4.0)


class Sampler:
    """Looks as the test has them."""

    def __init__(self, log_dirs: Sequence[str], **settings: float) -> None:
        self.log_dirs, self.settings = list(log_dirs), settings
        self.looks: dict[str, LogDirLook] = {}
        self.silence: str | None = None
        self.replaced = 0

    def latest(self) -> Mapping[str, LogDirLook]:
        return self.looks

    def replace(self) -> None:
        self.replaced += 1


class Mounts:
    """A mount table as the test has it."""

    def __init__(self) -> None:
        self.table = MountTable(())
        self.changes = 0
        self.wanted: list[list[int]] = []

    def become(self, text: str) -> None:
        self.table, self.changes = parse_mountinfo(text), self.changes + 1

    def current(self, *, wanted_ids: Iterable[int]) -> MountTable:
        self.wanted.append(list(wanted_ids))
        return self.table


class Watch(VolumeWatch):
    """A watch with its script."""

    def __init__(self, mounts: Mounts, **options: object) -> None:
        properties = parse_broker_properties(
            f"node.id=1\nlog.dirs={LOG_DIR}\n".encode(), Path("s.properties")
        )
        super().__init__(properties, **options)  # type: ignore[arg-type]
        self.mounts = mounts
        assert isinstance(self.sampler, Sampler)
        self.script: Sampler = self.sampler

    def seen(self, *looks: LogDirLook, mounts: str | None = None) -> VolumeObservation:
        self.script.looks = {one.log_dir: one for one in looks}
        if mounts is not None:
            self.mounts.become(ROOT + mounts)
        (volume,) = self.observe().volumes
        return volume


@pytest.fixture
def asked() -> list[tuple[Mount, ...]]:
    """The mounts that udev's database was asked about, each time."""
    return []


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch, asked: list[tuple[Mount, ...]]) -> Mounts:
    mounts = Mounts()

    def udev_uuids(given: Iterable[Mount]) -> dict[str, str]:
        asked.append(tuple(given))
        return {"8:17": UUID_1} if len(asked) == 1 else {"8:17": UUID_2}

    monkeypatch.setattr(volume_watch, "LogDirSampler", Sampler)
    monkeypatch.setattr(volume_watch, "MountTableReader", lambda: mounts)
    monkeypatch.setattr(volume_watch, "udev_uuids", udev_uuids)
    return mounts


@pytest.fixture
def watch(mounts: Mounts) -> Watch:
    return Watch(mounts, interval_seconds=0.5, hang_seconds=4.0)


def test_the_sampler_looks_at_log_dirs_and_paths_of_limits_as_often_as_configured(watch: Watch) -> None:
    assert watch.script.log_dirs == [LOG_DIR]
    assert watch.script.settings == {"interval_seconds": 0.5, "hang_seconds": 4.0}


def test_a_watch_looks_five_times_a_second_and_gives_up_after_five_seconds(mounts: Mounts) -> None:
    assert Watch(mounts).script.settings == {"interval_seconds": 0.2, "hang_seconds": 5.0}


def test_mounts_that_answered_are_wanted_in_the_table_those_of_failed_looks_are_not(watch: Watch) -> None:
    watch.seen(look(LOG_DIR, 11), mounts=DISK)
    watch.seen(replace(look(LOG_DIR, 12), failed_step="statvfs", failed_errno=5))
    watch.seen(look(LOG_DIR, 0))
    assert watch.mounts.wanted == [[11], [], []]


def test_the_uuid_of_a_device_is_looked_up_when_the_mounts_have_changed(
    watch: Watch, asked: list[tuple[Mount, ...]]
) -> None:
    assert watch.seen(look(LOG_DIR, 11), mounts=DISK).volume_id == UUID_1
    assert watch.seen(look(LOG_DIR, 11)).volume_id == UUID_1
    assert [[mount.mount_id for mount in mounts] for mounts in asked] == [[1, 11]]
    assert watch.seen(look(LOG_DIR, 11), mounts=DISK).status == "failed", "another file system is there"
    assert len(asked) == 2


def test_without_an_answer_of_the_probe_every_volume_fails_with_the_reason(watch: Watch) -> None:
    watch.seen(look(LOG_DIR, 11), mounts=DISK)
    watch.script.silence = "nothing answers"
    volume = watch.seen(look(LOG_DIR, 11))
    assert (volume.status, volume.reason) == ("failed", "nothing answers")


@pytest.mark.parametrize(
    ("hung", "before", "now", "replaced"),
    [
        (HANGS, DISK, DISK, 0),
        (HANGS, DISK, "", 1),  # its mount has gone
        (HANGS, DISK, COVERED, 1),  # another one hides it
        (HANGS_UNOPENED, DISK, DISK, 0),
        (HANGS_UNOPENED, DISK, "", 1),
        (HANGS_UNOPENED, "", DISK, 1),
        (HANGS_UNOPENED, "", "", 0),
        (replace(HANGS, waiting_seconds=3.99), DISK, "", 0),
    ],
)
def test_a_probe_that_waits_in_a_mount_that_is_gone_is_replaced(
    watch: Watch, hung: LogDirLook, before: str, now: str, replaced: int
) -> None:
    watch.seen(look(LOG_DIR, 11 if before else 1), mounts=before)
    watch.seen(hung, mounts=now)
    assert watch.script.replaced == replaced


def test_at_the_first_look_nothing_is_known_of_an_earlier_mount(watch: Watch) -> None:
    watch.seen(HANGS_UNOPENED, mounts=DISK)
    assert watch.script.replaced == 0


def test_whether_to_replace_the_probe_is_asked_only_when_the_mounts_have_changed(watch: Watch) -> None:
    watch.seen(look(LOG_DIR, 11), mounts=DISK)
    watch.mounts.table = parse_mountinfo(ROOT)  # without a change that was noticed
    watch.seen(HANGS)
    assert watch.script.replaced == 0


@pytest.mark.parametrize(("waiting_seconds", "status"), [(3.99, "ok"), (4.0, "failed")])
def test_a_look_fails_after_the_configured_time(watch: Watch, waiting_seconds: float, status: str) -> None:
    watch.seen(look(LOG_DIR, 11), mounts=DISK)
    assert watch.seen(replace(look(LOG_DIR, 11), waiting_seconds=waiting_seconds)).status == status


def unformatted_on_root(watch: Watch) -> VolumeObservation:
    other = replace(look("/data/2/k", 11), formatted=True)
    watch.properties = parse_broker_properties(
        f"node.id=1\nlog.dirs={LOG_DIR},/data/2/k\n".encode(), Path("s.properties")
    )
    watch.script.looks = {LOG_DIR: replace(look(LOG_DIR, 1), formatted=False), "/data/2/k": other}
    watch.mounts.become(ROOT + DISK)
    return next(volume for volume in watch.observe().volumes if LOG_DIR in volume.log_dirs)


def test_a_log_dir_without_its_mount_is_believed_only_if_accepted(watch: Watch) -> None:
    assert unformatted_on_root(watch).status == "failed"
    watch.accept(LOG_DIR)
    assert unformatted_on_root(watch).status == "ok"


def recorded(volume_id: str, mount_point: str, name: str = "/dev/sdb1") -> Recorded:
    identity = VolumeIdentity(volume_id, name, mount_point, "", name, None)
    return Recorded({LOG_DIR: identity}, {volume_id: LogDirLook("", capacity_bytes=100, available_bytes=3)})


@pytest.mark.parametrize(
    ("last_report", "status"),
    [
        (recorded(UUID_1, "/data/1"), "ok"),
        (recorded(UUID_1, "/elsewhere"), "ok"),  # the same file system, mounted elsewhere
        (recorded(UUID_2, "/elsewhere", "/dev/gone"), "failed"),
        (recorded(UUID_2, "/"), "ok"),  # it waited there for its mount
    ],
)
def test_a_log_dir_is_expected_on_the_volume_of_the_last_report(
    watch: Watch, last_report: Recorded, status: str
) -> None:
    watch.seen(look(LOG_DIR, 11), mounts=DISK)
    watch.recall(last_report)
    assert watch.seen(look(LOG_DIR, 11)).status == status
    assert watch.remembered[LOG_DIR].volume_id == (UUID_1 if status == "ok" else UUID_2)


def test_a_log_dir_that_was_not_found_yet_is_expected_where_it_was_last_reported(watch: Watch) -> None:
    watch.recall(recorded(UUID_2, "/data/1"))
    volume = watch.seen(LogDirLook(LOG_DIR), mounts=DISK)
    assert (volume.volume_id, volume.capacity_bytes, volume.consumed_bytes) == (UUID_2, 100, 97)


def test_a_log_dir_that_is_accepted_twice_or_before_anything_was_found_is_no_error(watch: Watch) -> None:
    watch.accept(LOG_DIR)
    watch.accept(LOG_DIR)
    watch.seen(look(LOG_DIR, 11), mounts=DISK)
    assert watch.remembered[LOG_DIR].volume_id == UUID_1, "there is nothing to wait for"
