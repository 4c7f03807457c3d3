"""Damaging good input: the ways in which files and records go bad, by a generator of random numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_TOKENS = (
    *(
        token.encode()
        for token in ("\0", "\n", "\r\n", "\\", '"', "'", "{", "}", "[", "]", ":", ",", "=", "#")
    ),
    *(token.encode() for token in ("- ", "&a ", "*a", "null", "true", "-1", "0", "1e999", "NaN", "9" * 30)),
    *(token.encode() for token in ("-9223372036854775809", "\N{RIGHT-TO-LEFT OVERRIDE}", "ä", " " * 500)),
    *(token.encode() for token in ("[" * 400, '{"a":' * 300, "!!python/object:x ", "${env:HOME}")),
    *(b"", b"\xff\xfe", b"\xed\xa0\x80", b"\\u0000", b"\\ud800"),
)

Damage = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def _flip(lots: random.Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    if data:
        data[lots.randrange(len(data))] ^= 1 << lots.randrange(8)


def _insert(lots: random.Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    at = lots.randint(0, len(data))
    data[at:at] = lots.choice(_TOKENS)


def _cut(lots: random.Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    begin, end = sorted((lots.randint(0, len(data)), lots.randint(0, len(data))))
    del data[begin : min(end, begin + 40)]


def _truncate(lots: random.Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    del data[lots.randint(0, len(data)) :]


def _repeat(lots: random.Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    begin, end = sorted((lots.randint(0, len(data)), lots.randint(0, len(data))))
    data[end:end] = data[begin:end][:200]


def _splice(lots: random.Random, data: bytearray, corpus: Sequence[bytes]) -> None:
    other = lots.choice(corpus)
    begin, end = sorted((lots.randint(0, len(other)), lots.randint(0, len(other))))
    at = lots.randint(0, len(data))
    data[at : at + lots.randint(0, 30)] = other[begin:end]


def _number(lots: random.Random, data: bytearray, _corpus: Sequence[bytes]) -> None:
    digits = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
    if digits:
        at = lots.choice(digits)
        data[at : at + 1] = lots.choice(_TOKENS)


_DAMAGES: tuple[Damage, ...] = (_flip, _insert, _cut, _truncate, _repeat, _splice, _number)


def damaged(lots: random.Random, corpus: Sequence[bytes]) -> bytes:
    """Return one of the corpus, damaged one to five times."""
    data = bytearray(lots.choice(corpus))
    for _ in range(lots.randint(1, 5)):
        lots.choice(_DAMAGES)(lots, data, corpus)
    return bytes(data)
