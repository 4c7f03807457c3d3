"""What `make test` consists of, cut into streams. CONTRIBUTING.md says what is where."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDS = REPOSITORY / "build/test"
"""Where each stream's output is kept."""
_NO_TESTS = 5
"""How pytest ends where nothing was to be run."""


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


# Each file of Python tests belongs to the stream that names it, or else the nearest folder above it.
PYTHON: Mapping[str, tuple[str, ...]] = {
    # On a Kafka, at a limit and at full speed: what these compare are rates and how soon something happens.
    "load": (
        "tests/integration/demo/test_demo.py",
        "tests/integration/demo/test_load.py",
        "tests/integration/demo/test_overshoot.py",
        "tests/integration/fence",
        "tests/integration/quotas",
    ),
    # The fleet of three brokers and agents that many tests share.
    "spine": ("tests/integration/spine", "tests/integration/soak", "tests/integration/tutorial"),
    # Everything else on a real Kafka, or on real disks.
    "kafka": ("tests/integration",),
    # Roles, played on this machine.
    "roles": ("tests/fleet/roles",),
    # Everything else.
    "unit": ("tests",),
}
# In an environment of their own.
SPARK = "tests/spark"
# How many cores each keeps busy, roughly as measured, in an order that keeps two busy to the end. What
# compares rates asks for more than it uses: on two cores nothing fits beside it but what mostly waits.
_CORES = {
    "hosts": 1.0,
    "load": 1.3,
    "unit": 0.9,
    "roles": 0.9,
    "kafka": 0.7,
    "java": 1.2,
    "spark": 1.1,
    "spine": 0.8,
}


def streams() -> tuple[Stream, ...]:
    """All of them; of two that find their cores free, the one that comes first here begins first."""
    made = {
        "hosts": ("make", "lint-fleet", "test-scenario"),  # they use the same folder, so not at the same time
        "java": ("make", "test-java"),
        "spark": ("make", "test-spark"),
    }
    return (
        Stream(name="build", command=("make", "callback", "kafka-jars"), cores=1.0),
        Stream(name="lint", command=("make", "lint-python", "docs"), cores=1.0),
        *(
            Stream(
                name=name,
                command=made.get(name) or _pytest(name),
                cores=cores,
                after=("build",),
                good=(0, _NO_TESTS) if name in PYTHON and _arguments() else (0,),
            )
            for name, cores in _CORES.items()
        ),
    )


def chosen(names: Sequence[str]) -> tuple[Stream, ...]:
    """The streams of these names, ``python`` meaning all of Python's but the pipeline's; all by default.

    Raises:
        KeyError: there is none of that name.
    """
    wanted = {part for name in names for part in (PYTHON if name == "python" else (name,))}
    known = {stream.name: stream for stream in streams()}
    if unknown := wanted - set(known):
        raise KeyError(f"{', '.join(sorted(unknown))}: there are {', '.join(known)}, and python")
    return tuple(stream for stream in known.values() if not wanted or stream.name in wanted)


def stream_of(path: str) -> str:
    """The stream that runs a file of Python tests, given its path from the repository on."""
    paths = {path: name for name, named in (*PYTHON.items(), ("spark", (SPARK,))) for path in named}
    nearest = max((named for named in paths if Path(path).is_relative_to(named)), key=len)
    return paths[nearest]


def _pytest(name: str) -> tuple[str, ...]:
    others = [path for other in PYTHON if other != name for path in PYTHON[other]]
    ignored = [
        other
        for other in (*others, SPARK)
        if any(Path(other).is_relative_to(path) and other != path for path in PYTHON[name])
    ]
    return (
        # Loop-mounted file systems need root.
        *(() if os.geteuid() == 0 else ("sudo", "-E")),
        *(sys.executable, "-m", "pytest", *PYTHON[name], *(f"--ignore={path}" for path in ignored)),
        *("-m", "not long", "-o", f"cache_dir={RECORDS / name}.cache"),
        *_arguments(),
    )


def _arguments() -> list[str]:
    """What the caller adds to every call of pytest."""
    return shlex.split(os.environ.get("PYTEST_ARGS", ""))
