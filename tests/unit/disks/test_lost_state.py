"""Without a state file, a directory on the root file system is not simply believed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.disks.identity import VolumeIdentity, identify
from kquota.disks.observation import VolumeObservation
from kquota.disks.probe import LogDirLook
from kquota.disks.volume_watch import recorded_volumes
from kquota.disks.volumes import resolve
from kquota.policy.volume import Volume
from tests.unit.disks.test_volumes import MOUNTS, UUID_1, UUID_2, look, properties


def unformatted(
    *formatted: bool | None, accept: bool = False, mount_id: int = 1
) -> tuple[VolumeObservation, ...]:
    """The state of log dirs that were never seen, the first of them on the mount with this id."""
    names = [f"/data/{number}" for number, _ in enumerate(formatted, start=1)]
    looks = {
        name: replace(look(name, mount_id if name == "/data/1" else 12), formatted=one)
        for name, one in zip(names, formatted, strict=True)
    }
    return resolve(properties(",".join(names)), looks, MOUNTS, {}, accept=accept).observation.volumes


@pytest.mark.accepts("A28", "F18")
def test_a_log_dir_without_meta_properties_on_the_root_file_system_has_lost_its_mount() -> None:
    lost, other = unformatted(False, True)
    assert (lost.status, lost.capacity_bytes, other.status) == ("failed", None, "ok")
    assert lost.reason is not None
    assert lost.reason.startswith("/data/1 is on the root file system and has no meta.properties")


@pytest.mark.parametrize("formatted", [(False,), (False, False), (True, True), (None, True), (True, False)])
def test_a_first_start_a_formatted_log_dir_and_one_that_can_not_be_seen_are_believed(
    formatted: tuple[bool | None, ...],
) -> None:
    assert {volume.status for volume in unformatted(*formatted)} == {"ok"}


def test_a_new_disk_in_its_place_and_what_an_operator_accepts_are_believed() -> None:
    assert {volume.status for volume in unformatted(False, True, mount_id=11)} == {"ok"}
    assert {volume.status for volume in unformatted(False, True, accept=True)} == {"ok"}


def test_what_was_last_reported_is_read_with_its_figures_but_for_volumes_never_seen() -> None:
    seen = Volume(
        "/dev/sdb1", 100, 97, None, volume_id=UUID_1, mount_point="/data/1", log_dirs=("/data/1/k",)
    )
    unseen = seen._replace(name="/x", volume_id="unknown@/x", mount_point="/x", log_dirs=("/x",))
    foreign = seen._replace(name="/y", mount_point=None, log_dirs=("/y",))
    recorded = recorded_volumes((seen, unseen, foreign, seen._replace(name="/z", volume_id="z", log_dirs=())))
    assert list(recorded.identities) == ["/data/1/k"]
    assert recorded.identities["/data/1/k"].volume_id == UUID_1
    assert recorded.figures[UUID_1].consumed_bytes == 97
    assert not recorded_volumes((seen._replace(capacity_bytes=0, consumed_bytes=0),)).figures


def test_a_reported_volume_is_the_same_by_its_id_or_by_its_place() -> None:
    seen = Volume(
        "/dev/sdb1", 100, 97, None, volume_id=UUID_1, mount_point="/data/1", log_dirs=("/data/1/k",)
    )
    expected = recorded_volumes((seen,)).identities["/data/1/k"]
    root, disk = MOUNTS.by_id[1], MOUNTS.by_id[11]
    assert expected.is_same(identify(disk, UUID_1), mount_point="/elsewhere")
    assert expected.is_same(identify(disk, UUID_2), mount_point="/data/1"), "a new disk in its place"
    assert not expected.is_same(identify(root, None), mount_point="/")
    assert str(expected) == "/dev/sdb1 at /data/1 (as this broker last reported)"


def test_a_reported_volume_is_recalled_by_id_name_and_mount_point_whatever_came_before_it() -> None:
    seen = Volume("/dev/sdb1", 1, 1, None, volume_id=UUID_1, mount_point="/data/1", log_dirs=("/data/1/k",))
    recorded = recorded_volumes((seen._replace(volume_id=None, log_dirs=("/x",)), seen))
    expected = VolumeIdentity(UUID_1, "/dev/sdb1", "/data/1", "", "/dev/sdb1", None)
    assert recorded.identities == {"/data/1/k": expected}
    assert recorded.figures == {UUID_1: LogDirLook("", capacity_bytes=1)}
