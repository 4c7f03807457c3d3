"""The identity of a file's content, as far as the file system shows it: to notice that it was replaced."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[str | int, ...]
"""A file's path, with the identity of its content and of its readers as far as the file system shows it."""


def stamp(path: Path | str) -> Stamp:
    """Return the present state of a file; it differs from an earlier one when the file was replaced or
    rewritten, or its permissions were changed.
    """
    try:
        # Rotation by a symbolic link is seen too: stat follows it.
        found = Path(path).stat()
    except OSError:
        return (str(path),)
    return str(path), found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
