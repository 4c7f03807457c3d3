"""A stream of tests, and what is run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SPARK = "tests/spark"
"""Tests that run in an environment of their own."""

Files = Mapping[str, tuple[str, ...]]
"""The files of Python tests, and folders of them, that streams name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A command that runs beside other streams.

    ``cores`` is how many processor cores it keeps busy on the average, as measured: streams run together as
    long as all of theirs are there. It begins when those it comes ``after`` have ended well, as far as they
    are run at all. ``good`` are the exit codes with which it has ended well.
    """

    name: str
    command: tuple[str, ...]
    cores: float
    after: tuple[str, ...] = ()
    good: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Streams that are run together; of two that find their cores free, the first one begins.

    Each file of Python tests belongs to the stream that names it in ``python``, or else the nearest folder
    above it. ``records`` is where each stream's output is kept.
    """

    streams: tuple[Stream, ...]
    python: Files
    records: Path

    def chosen(self, names: Sequence[str]) -> tuple[Stream, ...]:
        """The streams of these names, ``python`` meaning all of Python's but the pipeline's; all by default.

        Raises:
            KeyError: there is none of that name.
        """
        wanted = {part for name in names for part in (self.python if name == "python" else (name,))}
        known = {stream.name: stream for stream in self.streams}
        if unknown := wanted - set(known):
            raise KeyError(f"{', '.join(sorted(unknown))}: there are {', '.join(known)}, and python")
        return tuple(stream for stream in known.values() if not wanted or stream.name in wanted)

    def stream_of(self, path: str) -> str:
        """The stream that runs a file of Python tests, given its path from the repository on."""
        paths = {path: name for name, named in (*self.python.items(), ("spark", (SPARK,))) for path in named}
        nearest = max((named for named in paths if Path(path).is_relative_to(named)), key=len)
        return paths[nearest]
