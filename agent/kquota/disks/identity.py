"""The identity of a volume, now and at the next start."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from kquota.disks.mountinfo import Mount


@dataclass(frozen=True, slots=True)
class VolumeIdentity:
    """A volume as it is known beyond one look at it: JSON-able, to be remembered for each log dir.

    ``volume_id`` is the file system's UUID where there is one, else made of type, source and mount point.
    ``fs_type`` is empty where the volume is known from a usage record, which does not name it.
    """

    volume_id: str
    name: str
    mount_point: str
    fs_type: str
    source: str
    fs_uuid: str | None

    def is_same(self, other: VolumeIdentity, *, mount_point: str) -> bool:
        """Return whether ``other``, seen at ``mount_point``, is the same file system.

        Device names and numbers change from boot to boot, so UUIDs decide wherever both are known; a file
        system without one is the same if type, source and mount point are. A volume known from a usage record
        is the same if its id is, or if it is mounted in the same place: a host may have got new disks.
        """
        if not self.fs_type:
            return self.volume_id == other.volume_id or self.mount_point in (mount_point, other.mount_point)
        if self.fs_uuid is not None and other.fs_uuid is not None:
            return self.fs_uuid == other.fs_uuid
        return (self.fs_type, self.source, self.mount_point) == (other.fs_type, other.source, mount_point)

    def __str__(self) -> str:
        """Describe the volume for a message."""
        if not self.fs_type:
            return f"{self.source} at {self.mount_point} (as this broker last reported)"
        uuid = f", fs uuid {self.fs_uuid}" if self.fs_uuid else ""
        return f"{self.source} at {self.mount_point} ({self.fs_type}{uuid})"


def identify(mount: Mount, fs_uuid: str | None) -> VolumeIdentity:
    """Identify the volume that a mount shows.

    A source that names no device or data set of its own (tmpfs, overlay) would not be unique within a
    broker, so its name carries the mount point; ZFS data sets are unique even without a slash.
    """
    is_specific = "/" in mount.source or mount.fs_type == "zfs"
    source = mount.source or mount.fs_type
    return VolumeIdentity(
        volume_id=fs_uuid or f"{mount.fs_type}:{source}@{mount.mount_point}",
        name=source if is_specific else f"{source}@{mount.mount_point}",
        mount_point=mount.mount_point,
        fs_type=mount.fs_type,
        source=source,
        fs_uuid=fs_uuid,
    )


def remembered_to_json(remembered: Mapping[str, VolumeIdentity]) -> dict[str, dict[str, str | None]]:
    """Return the identities to be stored: log dir → identity of its volume."""
    return {log_dir: asdict(identity) for log_dir, identity in remembered.items()}


def remembered_from_json(value: object) -> dict[str, VolumeIdentity]:
    """Read what ``remembered_to_json`` gave; unknown fields are ignored. Raises ValueError."""
    if not isinstance(value, Mapping):
        raise ValueError("remembered volumes: must be an object of log dir → volume")
    remembered = {}
    for log_dir, entry in value.items():
        if not isinstance(log_dir, str) or not isinstance(entry, Mapping):
            raise ValueError(f"remembered volumes: {log_dir!r} must be an object")
        values: dict[str, str | None] = {}
        for field in fields(VolumeIdentity):
            item = entry.get(field.name)
            if not isinstance(item, str) and not (item is None and field.name == "fs_uuid"):
                raise ValueError(f"remembered volumes: {log_dir}: {field.name} = {item!r} must be text")
            values[field.name] = item
        remembered[log_dir] = VolumeIdentity(**values)  # type: ignore[arg-type]  # checked field by field above
    return remembered


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
