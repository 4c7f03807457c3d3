"""The lock of all that Maven resolves here, for jars that are outside its own store."""

from __future__ import annotations

import hashlib
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements/maven.sha256"


def difference_from_lock(folder: Path, lock: Path = LOCK) -> str | None:
    """Return a sentence about a jar of the folder that is not one of the lock; None if all are.

    A line of the lock has a SHA-256, two spaces and the path in Maven's store, which ends in the file's name.
    """
    locked: dict[str, set[str]] = {}
    for line in lock.read_text("utf-8").splitlines():
        digest, path = line.split("  ")
        locked.setdefault(path.rpartition("/")[2], set()).add(digest)
    for jar in sorted(folder.glob("*.jar")):
        with jar.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        wanted = locked.get(jar.name)
        if wanted is None:
            return f"{jar} (SHA-256 {found}) is not in {lock}: if it is meant to be used, run make lock"
        if found not in wanted:
            return (
                f"{jar} is not the file that was locked: {lock} wants the SHA-256"
                f" {' or '.join(sorted(wanted))}, but it has {found}: remove {folder}, and try again"
            )
    return None
