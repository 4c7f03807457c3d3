"""The decision file: the lease with the state that the broker's plug-in applies to producers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from kquota.host.atomic import remove_leftovers, replace_file
from kquota.host.safe_read import MAX_FILE_BYTES, Refusal, read_json_object

__all__ = ["MAX_FILE_BYTES", "DecisionFile", "read"]

# The broker's user, which is not the agent's, reads it.
_MODE = 0o644


class DecisionFile:
    """The one writer of a decision file, or of another file for the plug-in; ``what`` is its content."""

    def __init__(self, path: Path, what: str = "decision") -> None:
        """Take over ``path``; remove unfinished files that an earlier writer left there.

        Raises:
            OSError: the leftovers of an earlier writer can't be removed.
        """
        self.path = path
        self._what = what
        remove_leftovers(path)

    def write(self, document: Mapping[str, object]) -> None:
        """Replace the file atomically by ``document`` as one line of JSON.

        Raises:
            OSError: with the path; the old file, and with it the old lease, is still there.
            ValueError: the document is no JSON (NaN, an unknown type) or larger than readers accept.
        """
        data = json.dumps(document, allow_nan=False).encode() + b"\n"
        if len(data) > MAX_FILE_BYTES:
            raise ValueError(
                f"a {self._what} of {len(data)} bytes is larger than readers accept, {MAX_FILE_BYTES}"
            )
        replace_file(self.path, data, _MODE)


def read(path: Path) -> dict[str, object] | Refusal:
    """Read a decision file by the rules of the broker's plug-in; numbers with a fraction are Decimal.

    The lease is not judged here: an expired decision is returned like any other.
    """
    return read_json_object(path, "decision file")


def lease_end_uptime_ms(path: Path, boot_id: str) -> int:
    """Return when the lease of the decision at `path` ends, in ms since that boot; 0 without one."""
    found = read(path)
    if isinstance(found, Refusal) or found.get("boot_id") != boot_id:
        return 0
    end = found.get("valid_until_uptime_ms")
    return end if isinstance(end, int) else 0
