"""POSIX ACLs of files, as the kernel keeps them in an attribute (``<linux/posix_acl_xattr.h>``)."""

from __future__ import annotations

import errno
import os
import stat
import struct

READ, SEARCH = 4, 1
_ATTRIBUTE = "system.posix_acl_access"
_VERSION, _ENTRY = struct.pack("<I", 2), struct.Struct("<HHI")
_OWNER, _USER, _OWNING_GROUP, _GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
_NO_ID = 0xFFFFFFFF


def with_user(acl: bytes | None, mode: int, user_id: int, permissions: int) -> bytes:
    """Return an ACL that also gives the user these permissions, and all others what they have.

    ``acl`` is the present one, None for a file that has only its ``mode``. Permissions of entries that the
    mask takes away are removed from these entries, because the new mask may allow them.
    """
    entries = _of_mode(mode) if acl is None else _decoded(acl)
    mask = entries.pop((_MASK, _NO_ID), 7)
    masked = {key: value & mask for key, value in entries.items() if key[0] in (_USER, _OWNING_GROUP, _GROUP)}
    masked[_USER, user_id] = masked.get((_USER, user_id), 0) | permissions
    mask = 0
    for value in masked.values():
        mask |= value
    entries |= {**masked, (_MASK, _NO_ID): mask}
    return _VERSION + b"".join(_ENTRY.pack(tag, entries[tag, who], who) for tag, who in sorted(entries))


def allow(file: int, user_id: int, permissions: int) -> None:
    """Give the user these permissions of an open file. Raises OSError where its file system has no ACLs."""
    try:
        present = os.getxattr(file, _ATTRIBUTE)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        present = None
    os.setxattr(file, _ATTRIBUTE, with_user(present, os.fstat(file).st_mode, user_id, permissions))


def _of_mode(mode: int) -> dict[tuple[int, int], int]:
    bits = stat.S_IMODE(mode)
    return {
        (_OWNER, _NO_ID): bits >> 6 & 7,
        (_OWNING_GROUP, _NO_ID): bits >> 3 & 7,
        (_OTHER, _NO_ID): bits & 7,
    }


def _decoded(acl: bytes) -> dict[tuple[int, int], int]:
    return {(tag, who): value for tag, value, who in _ENTRY.iter_unpack(acl[len(_VERSION) :])}
