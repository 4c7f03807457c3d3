"""The mount table, from ``/proc/self/mountinfo`` (format: proc_pid_mountinfo(5)).

``psutil.disk_partitions`` reads ``/proc/self/mounts``, which lacks what we need here: mount ids,
device numbers (which file systems are the same one), and the options of the file system itself. Of
these two lists of options only the latter counts: in a service's sandbox a mount's own options are
"ro" although the file system takes writes, and a file system that the kernel has stopped after an
error keeps the mount's own "rw".
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_OCTAL = re.compile(r"\\([0-3][0-7]{2})")
# After these the kernel refuses writes, whatever the mount's own options are.
_SUPER_OPTION_FAULTS = {
    "shutdown": "the file system has been shut down",
    "emergency_ro": "the kernel has made the file system read-only after an error",
    "ro": "the file system is read-only",
}


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of the mount table. ``device`` is "major:minor", the same for all mounts of a file system."""

    mount_id: int
    device: str
    root: str
    mount_point: str
    fs_type: str
    source: str
    super_options: tuple[str, ...]

    @property
    def fault(self) -> str | None:
        """Why this file system takes no writes, or None."""
        faults = _SUPER_OPTION_FAULTS.items()
        return next((reason for option, reason in faults if option in self.super_options), None)


@dataclass(frozen=True, slots=True)
class MountTable:
    """All mounts of one reading, in the kernel's order."""

    mounts: tuple[Mount, ...]
    by_id: Mapping[int, Mount] = field(init=False)
    _by_mount_point: Mapping[str, Mount] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {mount.mount_id: mount for mount in self.mounts})
        # A later mount on the same point hides the earlier ones.
        object.__setattr__(self, "_by_mount_point", {mount.mount_point: mount for mount in self.mounts})

    def mount_of(self, path: str) -> Mount | None:
        """Return the mount that ``path`` (absolute, symbolic links resolved) lies on.

        The longest mount point wins, and of several mounts on one point the last, which hides the others.
        """
        path = os.path.normpath(path)
        while path != "/":
            if (mount := self._by_mount_point.get(path)) is not None:
                return mount
            path = path.rpartition("/")[0] or "/"
        return self._by_mount_point.get("/")

    def is_root(self, mount: Mount) -> bool:
        """Return whether a mount shows the file system that the host runs from."""
        root = self._by_mount_point.get("/")
        return root is not None and root.device == mount.device


def parse_mountinfo(text: str) -> MountTable:
    """Parse the text of a mountinfo file; a line of another form raises ValueError."""
    return MountTable(tuple(_parse_line(line) for line in text.split("\n") if line))


def _parse_line(line: str) -> Mount:
    before, separator, after = line.partition(" - ")
    fields, rest = before.split(" "), after.split(" ")
    # Some file systems show an empty source, which leaves two blanks: keep the empty field.
    if not separator or len(fields) < 6 or len(rest) < 3 or not fields[0].isdecimal():
        raise ValueError(f"not a line of mountinfo: {line!r}")
    return Mount(
        mount_id=int(fields[0]),
        device=fields[2],
        root=_unescape(fields[3]),
        mount_point=_unescape(fields[4]),
        fs_type=rest[0],
        source=_unescape(rest[1]),
        super_options=tuple(_unescape(rest[2]).split(",")),
    )


def _unescape(text: str) -> str:
    """Undo the kernel's escapes of blank, tab, newline, backslash and hash (three octal digits, one byte)."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text) if "\\" in text else text


class MountTableReader:
    """Reads the mount table again when it has changed, and at least every ``refresh_seconds``.

    The kernel announces mounts and unmounts to poll(2), but not a file system that turns read-only by
    itself; hence the periodic reading. Reading touches no file system, so a hung one can't block it.
    """

    def __init__(self, path: str = "/proc/self/mountinfo", *, refresh_seconds: float = 1.0) -> None:
        self._refresh_seconds = refresh_seconds
        self._fd = os.open(path, os.O_RDONLY)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLPRI | select.POLLERR)
        self._text = b""
        self._read_at: float | None = None
        self._table = MountTable(())
        self.changes = 0

    def current(self, *, wanted_ids: Iterable[int] = ()) -> MountTable:
        """Return the mount table; it is read again at once where it lacks one of ``wanted_ids``."""
        now = time.monotonic()
        announced = any(events & (select.POLLPRI | select.POLLERR) for _, events in self._poll.poll(0))
        if (
            announced
            or self._read_at is None
            or now - self._read_at >= self._refresh_seconds
            or any(mount_id not in self._table.by_id for mount_id in wanted_ids)
        ):
            self._read(now)
        return self._table

    def _read(self, now: float) -> None:
        os.lseek(self._fd, 0, os.SEEK_SET)
        parts: list[bytes] = []
        while part := os.read(self._fd, 1 << 16):
            parts.append(part)
        text = b"".join(parts)
        self._read_at = now
        if text == self._text:
            return
        self._text = text
        # No log dir of a server.properties is below a path that is no UTF-8, and a report could not name it.
        self._table = parse_mountinfo(text.decode("utf-8", "replace"))
        self.changes += 1

    def close(self) -> None:
        """Give the file back; further reading is a programming error."""
        os.close(self._fd)
