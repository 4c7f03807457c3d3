"""A bench: measurements in the order in which they are taken, and the use of their figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Generic, TypeVar

import psutil

from bench.harness.claims import Claim
from bench.harness.results import Figures

Shared = TypeVar("Shared")
REPOSITORY = Path(__file__).resolve().parents[2]


class Profile(Enum):
    """The amount of measurements: a few of them, to try the command; the usual ones; everything."""

    SMALL = "small"
    USUAL = "usual"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Measurement(Generic[Shared]):
    """One of them: its result is saved under its name. `--only` takes the name or the group."""

    name: str
    group: str
    run: Callable[[Shared], Iterable[object]]


@dataclass(frozen=True, slots=True)
class Bench(Generic[Shared]):
    """A bench. `open` makes what its measurements share, and takes a receiver of progress messages."""

    command: str
    page: Path
    results: Path
    kinds: tuple[type, ...]
    open: Callable[[Callable[[str], None]], AbstractContextManager[Shared]]
    versions: Callable[[Shared], Iterable[str]]
    measurements: Callable[[Profile], Iterable[Measurement[Shared]]]
    template: str
    """That of the page, below bench/."""
    claims: Callable[[Figures], Iterable[Claim]]
    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    """Those that the template calls."""
    draw: Callable[[Figures], None] = lambda _figures: None


def machine(versions: Iterable[str]) -> str:
    """Return the machine we run on and the subject of the measurements, in one line."""
    memory_gib = psutil.virtual_memory().total / 2**30
    own = f"{os.cpu_count()} cores", f"{memory_gib:.0f} GiB of memory", f"Linux {platform.release()}"
    return ", ".join((*own, *versions))
