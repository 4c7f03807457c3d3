"""An ACL with a further user, as the kernel judges it (acl(5): ACCESS CHECK ALGORITHM)."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from kquota.host.acl import READ, SEARCH, with_user

OWNER, USER, OWNING_GROUP, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
NO_ID = 0xFFFFFFFF
AGENT = 998
Entries = dict[tuple[int, int], int]

permissions = st.integers(0, 7)
ids = st.integers(1, 1200)


def encode(entries: Entries) -> bytes:
    packed = (struct.pack("<HHI", tag, entries[tag, who], who) for tag, who in sorted(entries))
    return struct.pack("<I", 2) + b"".join(packed)


def decode(acl: bytes) -> Entries:
    assert acl[:4] == struct.pack("<I", 2)
    found = [(tag, who, value) for tag, value, who in struct.iter_unpack("<HHI", acl[4:])]
    assert [(tag, who) for tag, who, _ in found] == sorted({(tag, who) for tag, who, _ in found})
    return {(tag, who): value for tag, who, value in found}


def in_force(entries: Entries) -> Entries:
    """Each entry with what the mask leaves of it."""
    mask = entries.get((MASK, NO_ID), 7)
    return {
        key: value & mask if key[0] in (USER, OWNING_GROUP, GROUP) else value
        for key, value in entries.items()
        if key[0] != MASK
    }


@st.composite
def acls(draw: st.DrawFn) -> Entries:
    entries = {(tag, NO_ID): draw(permissions) for tag in (OWNER, OWNING_GROUP, OTHER)}
    for tag in (USER, GROUP):
        entries |= {(tag, who): draw(permissions) for who in draw(st.sets(ids, max_size=3))}
    if len(entries) > 3 or draw(st.booleans()):
        entries[MASK, NO_ID] = draw(permissions)
    return entries


@given(acls(), permissions, st.one_of(st.just(AGENT), ids))
def test_the_user_gets_the_permissions_and_no_one_else_other_ones(
    entries: Entries, wanted: int, user: int
) -> None:
    before, after = in_force(entries), in_force(decode(with_user(encode(entries), 0, user, wanted)))
    assert after.pop((USER, user)) == before.pop((USER, user), 0) | wanted
    assert after == before


@given(st.integers(0, 0o7777), permissions)
def test_a_file_without_an_acl_gets_one_that_says_what_its_mode_says(mode: int, wanted: int) -> None:
    found = decode(with_user(None, mode | 0o100000, AGENT, wanted))
    assert found == {
        (OWNER, NO_ID): mode >> 6 & 7,
        (USER, AGENT): wanted,
        (OWNING_GROUP, NO_ID): mode >> 3 & 7,
        (MASK, NO_ID): mode >> 3 & 7 | wanted,
        (OTHER, NO_ID): mode & 7,
    }


@given(acls())
def test_what_was_given_before_is_given_again_without_a_change(entries: Entries) -> None:
    once = with_user(encode(entries), 0, AGENT, READ | SEARCH)
    assert with_user(once, 0, AGENT, READ | SEARCH) == once
