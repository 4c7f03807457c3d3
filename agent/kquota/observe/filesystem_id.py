"""File system UUIDs as udev knows them, for kernels and directories that don't provide them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from kquota.observe.mountinfo import Mount


def udev_uuids(
    mounts: Iterable[Mount],
    *,
    udev_data: Path = Path("/run/udev/data"),
    by_uuid: Path = Path("/dev/disk/by-uuid"),
) -> Mapping[str, str]:
    """Return the UUID by "major:minor" of each mount's file system, where it is known.

    Both sources are readable by everyone and in memory, no disk is asked: udev's database, and the links
    of ``by_uuid`` (a service without access to devices has only the former). File systems without a
    device number of their own, such as btrfs, are found by their source device.
    """
    links = _links(by_uuid)
    uuids = {}
    for mount in mounts:
        number = _device_number(mount)
        if number is not None and (uuid := _database_entry(udev_data / f"b{number}") or links.get(number)):
            uuids[mount.device] = uuid.lower()
    return uuids


def _device_number(mount: Mount) -> str | None:
    if not mount.device.startswith("0:"):
        return mount.device
    if not mount.source.startswith("/dev/"):
        return None
    return _block_device_number(Path(mount.source))


def _block_device_number(path: Path) -> str | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISBLK(status.st_mode):
        return None
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def _links(by_uuid: Path) -> dict[str, str]:
    try:
        entries = sorted(by_uuid.iterdir())
    except OSError:
        return {}
    return {number: entry.name for entry in entries if (number := _block_device_number(entry))}


def _database_entry(path: Path) -> str | None:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return None
    key = "E:ID_FS_UUID="
    return next((line.removeprefix(key) for line in lines if line.startswith(key)), None) or None
