"""Replace a file so that a reader sees the old content or the new one, never half of either."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_SUFFIX = ".kquota-tmp"


def replace_file(path: Path, data: bytes, mode: int = 0o644, *, keep_owner: bool = False) -> None:
    """Replace ``path`` by a file with ``data`` and the permissions ``mode`` (whatever the umask).

    It belongs to the caller. With ``keep_owner``, a file that root replaces in another user's directory stays
    with the file's owner, or else with the directory's.

    Temp file in the same directory → fsync → rename → fsync of the directory: a crash at any step
    leaves the old or the new file, and after the return the new one survives a power cut.

    Raises:
        OSError: with ``path`` as its filename. Unless the directory's own fsync failed, the old file is
            untouched; the temp file is removed as far as the file system lets us.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            owner = _owner(directory, path.name) if keep_owner else None
            _replace(directory, path.name, data, mode, owner)
        finally:
            os.close(directory)
    except OSError as error:
        # errors of write and fsync carry no file name
        raise OSError(error.errno, error.strerror, str(path)) from error


def _owner(directory: int, name: str) -> tuple[int, int] | None:
    """Return the user and group that root leaves the file to; None for other users and root's own."""
    if os.geteuid() != 0:
        return None
    home = os.fstat(directory)
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        found = home
    # Root's own file in another user's directory: that user has to read it.
    kept = home if found.st_uid == 0 else found
    return None if kept.st_uid == 0 else (kept.st_uid, kept.st_gid)


def _replace(directory: int, name: str, data: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    temp = f".{name}.{os.getpid()}{_SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    if owner is not None:
        # The directory's owner may have put something in this place, which root must not give away.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temp, dir_fd=directory)
        flags |= os.O_EXCL
    file = os.open(temp, flags, 0o600, dir_fd=directory)
    try:
        try:
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(file, remaining) :]
            os.fchmod(file, mode)
            if owner is not None:
                os.fchown(file, *owner)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(temp, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        # the failure at hand is the one to report; remove_leftovers comes back for the file
        with contextlib.suppress(OSError):
            os.unlink(temp, dir_fd=directory)
        raise
    os.fsync(directory)


def remove_leftovers(path: Path) -> list[Path]:
    """Remove temp files that writers of ``path`` left when they died; return them.

    Only for the one writer of ``path``, before its first write.

    Raises:
        OSError: a leftover can't be removed.
    """
    leftovers = sorted(path.parent.glob(f".{path.name}.*{_SUFFIX}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return leftovers
