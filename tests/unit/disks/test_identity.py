"""Volumes are remembered as JSON and recognised again; UUIDs come from udev where the kernel is silent."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.disks.identity import (
    VolumeIdentity,
    identify,
    remembered_from_json,
    remembered_to_json,
    udev_uuids,
)
from kquota.disks.mountinfo import parse_mountinfo

IDENTITY = VolumeIdentity("u1", "/dev/sdb1", "/data/1", "xfs", "/dev/sdb1", "u1")


def test_what_is_remembered_survives_json() -> None:
    remembered = {"/data/1/k": IDENTITY, "/t": replace(IDENTITY, fs_uuid=None)}
    stored = json.loads(json.dumps(remembered_to_json(remembered)))
    stored["/t"]["a_later_field"] = 1
    assert remembered_from_json(stored) == remembered


@pytest.mark.parametrize(
    "value",
    [None, [], {"/a": 1}, {"/a": {}}, {"/a": {**remembered_to_json({"/a": IDENTITY})["/a"], "name": 1}}],
)
def test_a_damaged_memory_is_one_clear_error(value: object) -> None:
    with pytest.raises(ValueError, match="remembered volumes: "):
        remembered_from_json(value)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("1 0 8:17 / /d rw - xfs /dev/sdb1 rw", "/dev/sdb1"),
        ("1 0 0:40 / /d rw - zfs tank/kafka rw", "tank/kafka"),
        ("1 0 0:40 / /d rw - zfs tank rw", "tank"),
        ("1 0 0:40 / /d rw - overlay overlay rw", "overlay@/d"),
        ("1 0 0:40 / /d rw - nfs4 server:/export rw", "server:/export"),
        ("1 0 0:40 / /d rw - tmpfs  rw", "tmpfs@/d"),
    ],
)
def test_a_name_is_the_source_with_the_mount_point_where_that_says_too_little(line: str, name: str) -> None:
    (mount,) = parse_mountinfo(line).mounts
    assert identify(mount, None).name == name
    assert identify(mount, None).volume_id == f"{mount.fs_type}:{mount.source or 'tmpfs'}@/d"
    assert identify(mount, "u").volume_id == "u"


def test_uuids_come_from_udevs_database_and_from_links(tmp_path: Path) -> None:
    data, links = tmp_path / "data", tmp_path / "by-uuid"
    data.mkdir()
    links.mkdir()
    (data / "b8:17").write_text("S:disk/by-id/x\nE:ID_FS_UUID=ABCD-1234\nE:ID_FS_TYPE=xfs\n")
    (data / "b8:33").write_text("E:ID_FS_TYPE=xfs\n")
    table = parse_mountinfo(
        "1 0 8:17 / /a rw - xfs /dev/sdb1 rw\n2 1 8:33 / /b rw - xfs /dev/sdc1 rw\n"
        "3 1 0:44 / /c rw - tmpfs t rw\n"
    )
    assert udev_uuids(table.mounts, udev_data=data, by_uuid=links) == {"8:17": "abcd-1234"}
    assert udev_uuids(table.mounts, udev_data=tmp_path / "absent", by_uuid=tmp_path / "absent") == {}


def test_a_link_to_a_block_device_names_its_file_system(tmp_path: Path) -> None:
    device = next(path for path in sorted(Path("/dev").iterdir()) if path.is_block_device())
    number = device.stat().st_rdev
    (tmp_path / "dead-beef").symlink_to(device)
    (tmp_path / "not-a-device").symlink_to("/dev/null")
    own = f"{os.major(number)}:{os.minor(number)}"
    # btrfs shows an anonymous device number: there the source's own counts.
    table = parse_mountinfo(f"1 0 {own} / /a rw - ext4 x rw\n2 1 0:44 / /b rw - btrfs {device} rw\n")
    found = udev_uuids(table.mounts, udev_data=tmp_path / "absent", by_uuid=tmp_path)
    assert found == {own: "dead-beef", "0:44": "dead-beef"}


def test_bytes_that_are_no_text_hide_no_uuid(tmp_path: Path) -> None:
    (tmp_path / "b8:17").write_bytes(b"E:ID_MODEL=\xff\nE:ID_FS_UUID=ABCD-1234\n")
    table = parse_mountinfo("1 0 8:17 / /a rw - xfs /dev/sdb1 rw\n")
    assert udev_uuids(table.mounts, udev_data=tmp_path, by_uuid=tmp_path / "absent") == {"8:17": "abcd-1234"}


def test_a_memory_that_is_no_object_is_named() -> None:
    with pytest.raises(ValueError, match=r"^remembered volumes: must be an object of log dir → volume$"):
        remembered_from_json([])
