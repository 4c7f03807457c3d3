"""A failure belongs to its log dir: the broker runs on without one that it has taken offline."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from kquota.disks.identity import identify
from kquota.disks.observation import Observation, with_offline
from kquota.disks.probe import LogDirLook
from kquota.disks.volumes import resolve
from tests.unit.disks.test_volumes import DEVICE_UUIDS, MOUNTS, UUID_1, UUID_2, look, properties, resolved

SOUND, BROKEN = look("/data/1/k", 11), look("/data/1/m", 11)
LOG_DIRS = "/data/1/k,/data/1/m"


@pytest.mark.accepts("A28")
@pytest.mark.parametrize(
    "broken",
    [
        replace(BROKEN, failed_step="open", failed_errno=errno.ENOENT),
        replace(BROKEN, mount_id=1),  # its mount is gone
        replace(BROKEN, list_errno=errno.EIO),
        replace(BROKEN, capacity_bytes=0, available_bytes=0),
    ],
    ids=["missing", "gone", "not listed", "no capacity"],
)
def test_what_is_wrong_with_an_offline_log_dir_does_not_fail_its_volume(broken: LogDirLook) -> None:
    observation = resolved(LOG_DIRS, SOUND, broken, before=resolved(LOG_DIRS, SOUND, BROKEN)).observation
    (volume,) = observation.volumes
    (failure,) = volume.failures
    assert (volume.status, failure.log_dir) == ("failed", "/data/1/m")
    assert failure.reason.startswith("/data/1/m") or "/data/1/m is now on" in failure.reason
    (volume,) = with_offline(observation, ["/data/1/m"]).volumes
    assert (volume.status, volume.reason) == ("ok", None)


def test_all_offline_log_dirs_of_a_volume_are_named() -> None:
    names = ["/data/1/k", "/data/1/m", "/data/1/n"]
    observation = resolved(",".join(names), *(look(name, 11) for name in names)).observation
    (warning,) = with_offline(observation, names[1:]).warnings
    assert warning.endswith("the broker has taken /data/1/m, /data/1/n offline and runs on without it")


def test_log_dirs_that_were_on_two_volumes_are_two_lost_volumes() -> None:
    names, both = "/data/1/k,/data/2/k", [look("/data/1/k", 11), look("/data/2/k", 12)]
    before = resolved(names, *both)
    lost = resolved(names, *(replace(one, mount_id=1) for one in both), before=before).observation
    assert [(volume.volume_id, volume.status) for volume in lost.volumes] == [
        (UUID_1, "failed"),
        (UUID_2, "failed"),
    ]
    assert lost.volumes[0].reason == (
        f"the mount of /dev/sdb1 at /data/1 (xfs, fs uuid {UUID_1}) is gone; /data/1/k is now on"
        " /dev/sda1 at / (ext4), the root file system (kquota volumes --accept, if that is meant)"
    )


def test_a_volume_that_took_the_place_of_another_is_named() -> None:
    before = resolved("/data/1/k", look("/data/1/k", 11))
    (volume,) = resolved("/data/1/k", look("/data/1/k", 12), before=before).observation.volumes
    assert volume.reason is not None
    assert volume.reason.endswith(
        f"/data/1/k is now on /dev/sdc1 at /data/2 (ext4, fs uuid {UUID_2})"
        " (kquota volumes --accept, if that is meant)"
    )


def without_mounts(*names: str) -> Observation:
    looks = {name: replace(look(name, 1), formatted=False) for name in names}
    formatted = replace(look("/data/2/k", 12), formatted=True)
    text = ",".join([*names, "/data/2/k"])
    looks["/data/2/k"] = formatted
    return resolve(properties(text), looks, MOUNTS, {}, device_uuids=DEVICE_UUIDS).observation


def test_each_log_dir_that_was_never_formatted_is_a_lost_volume_of_its_own() -> None:
    lost = without_mounts("/data/8/k", "/data/9/k").volumes[:2]
    assert [(volume.volume_id, volume.mount_point) for volume in lost] == [
        ("unknown@/data/8/k", "/data/8/k"),
        ("unknown@/data/9/k", "/data/9/k"),
    ]
    assert all(volume.is_unknown for volume in lost)
    assert lost[0].reason == (
        "/data/8/k is on the root file system and has no meta.properties, which other directories of this"
        " broker have: its mount is missing (kquota volumes --accept, if that is meant)"
    )


def test_of_two_equal_looks_at_a_volume_the_newest_counts() -> None:
    newest = replace(BROKEN, sampled_at_monotonic=7.0)
    for looks in ([SOUND, newest], [newest, SOUND]):
        (volume,) = resolved(LOG_DIRS, *looks).observation.volumes
        assert volume.sampled_at_monotonic == 7.0


def test_a_volume_of_one_byte_has_a_capacity() -> None:
    tiny = look("/data/1/k", 11, capacity=1, available=1)
    (volume,) = resolved("/data/1/k", tiny).observation.volumes
    assert (volume.status, volume.capacity_bytes) == ("ok", 1)


def test_an_error_that_has_no_name_is_shown_by_its_number() -> None:
    failed = replace(SOUND, failed_step="statvfs", failed_errno=9999)
    (volume,) = resolved("/data/1/k", failed).observation.volumes
    assert volume.reason == "/data/1/k: statvfs failed: Unknown error 9999 (9999)"


def test_a_volume_without_a_uuid_is_described_without_one() -> None:
    assert str(identify(MOUNTS.by_id[12], None)) == "/dev/sdc1 at /data/2 (ext4)"
