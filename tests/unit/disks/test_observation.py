"""Log dirs that the broker has taken offline are distinguished from volumes that can't be judged."""

from __future__ import annotations

import pytest

from kquota.disks.observation import Failure, Observation, VolumeObservation, with_offline
from kquota.policy.volume import VolumeRole


def volume(*failures: Failure, log_dirs: tuple[str, ...] = ("/data/1/a", "/data/1/b")) -> VolumeObservation:
    return VolumeObservation(
        name="/dev/sdb1",
        volume_id="id",
        mount_point="/data/1",
        fs_type="xfs",
        log_dirs=log_dirs,
        role=VolumeRole.DATA,
        capacity_bytes=1000,
        consumed_bytes=400,
        sampled_at_monotonic=1.0,
        failures=failures,
    )


def merged(observed: VolumeObservation, *offline: str) -> tuple[VolumeObservation, tuple[str, ...]]:
    result = with_offline(Observation((observed,), ("earlier",)), offline)
    assert result.warnings[0] == "earlier"
    return result.volumes[0], result.warnings[1:]


@pytest.mark.accepts("A28", "F17")
def test_a_volume_is_offline_when_all_its_log_dirs_are() -> None:
    found, warnings = merged(volume(Failure(None, "shut down")), "/data/1/a", "/data/1//b/")
    assert (found.status, warnings) == ("offline", ())
    assert found.reason == "the broker has taken all its log dirs offline; shut down"


def test_one_log_dir_offline_is_a_warning_and_the_rest_decides() -> None:
    found, warnings = merged(volume(Failure("/data/1/a", "/data/1/a: EIO")), "/data/1/a")
    assert (found.status, found.reason) == ("ok", None)
    assert warnings == ("/dev/sdb1: the broker has taken /data/1/a offline and runs on without it",)
    found, _ = merged(volume(Failure("/data/1/b", "/data/1/b: EIO")), "/data/1/a")
    assert (found.status, found.reason) == ("failed", "/data/1/b: EIO")


def test_a_fault_of_the_whole_volume_counts_for_the_log_dir_that_is_left() -> None:
    found, _ = merged(volume(Failure(None, "read-only")), "/data/1/a")
    assert (found.status, found.reason) == ("failed", "read-only")


def test_nothing_offline_changes_nothing() -> None:
    found, warnings = merged(volume(Failure(None, "read-only"), Failure(None, "read-only")))
    assert (found.status, found.reason, warnings) == ("failed", "read-only", ())


def test_an_unknown_path_is_a_warning() -> None:
    found, warnings = merged(volume(), "/elsewhere")
    assert found.status == "ok"
    assert warnings == ("the broker reports /elsewhere offline, which is no log dir of it",)
