"""The repository's own files, for the tests about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
_IGNORED = [
    line.rstrip("/") for line in (REPOSITORY / ".gitignore").read_text("utf-8").splitlines() if line.strip()
]


def source_files(*patterns: str) -> list[Path]:
    """Return the files whose names match one of the patterns, without what .gitignore names.

    It walks the folders instead of asking git, so that it works in an unpacked archive as well.
    """
    found = [path for path in _walk() if any(fnmatch(path.name, pattern) for pattern in patterns)]
    assert found, f"there is no {' or '.join(patterns)} in {REPOSITORY}"
    return sorted(found)


def shown(path: Path) -> str:
    """Return the path as people write it."""
    return path.relative_to(REPOSITORY).as_posix()


def _walk() -> Iterator[Path]:
    for folder, folders, files in os.walk(REPOSITORY):
        folders[:] = [name for name in folders if name != ".git" and not _ignored(name)]
        yield from (Path(folder) / name for name in files if not _ignored(name))


def _ignored(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in _IGNORED)
