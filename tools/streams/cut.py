"""Makes a plan of what its streams are called, run, and keep busy."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.streams.stream import SPARK, Files, Plan, Stream

_NO_TESTS = 5
"""How pytest ends where nothing was to be run."""


def cut(
    first: Sequence[Stream],
    cores: Mapping[str, float],
    *,
    made: Mapping[str, tuple[str, ...]],
    python: Files,
    marks: str,
    records: Path,
) -> Plan:
    """Return these first streams, and those that have ``cores``, after the one that is called ``build``.

    Those in ``made`` have their command there; the others run the tests that bear the marks, in the files
    that ``python`` names for them.
    """

    def stream(name: str) -> Stream:
        if name in made:
            return Stream(name=name, command=made[name], cores=cores[name], after=("build",))
        kept = ("-o", f"cache_dir={records / name}.cache", "--durations=20", "--durations-min=2")
        # What the caller adds to every call; a stream may then have nothing to run.
        added = shlex.split(os.environ.get("PYTEST_ARGS", ""))
        return Stream(
            name=name,
            command=(*_pytest(name, python), "-m", marks, *kept, *added),
            cores=cores[name],
            after=("build",),
            good=(0, _NO_TESTS) if added else (0,),
        )

    return Plan(streams=(*first, *map(stream, cores)), python=python, records=records)


def _pytest(name: str, files: Files) -> tuple[str, ...]:
    others = [path for other in files if other != name for path in files[other]]
    ignored = [
        other
        for other in (*others, SPARK)
        if any(Path(other).is_relative_to(path) and other != path for path in files[name])
    ]
    return (
        # Loop-mounted file systems need root.
        *(() if os.geteuid() == 0 else ("sudo", "-E")),
        *(sys.executable, "-m", "pytest", *files[name], *(f"--ignore={path}" for path in ignored)),
    )
