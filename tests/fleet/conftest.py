"""Hosts for the tests: a fleet of a test's or module's own, gone at its end."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fleet.hosts.fleet import Fleet
from tests.fleet.hosts.spec import HostSpec

REPOSITORY = Path(__file__).resolve().parents[2]
MakeFleet = Callable[[Sequence[HostSpec]], Fleet]
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def make_fleet() -> Iterator[MakeFleet]:
    """`make_fleet(specs)` boots hosts; the tests of a module may share them."""
    with ExitStack() as stack:

        def make(specs: Sequence[HostSpec]) -> Fleet:
            name = f"test-{os.getpid()}-{next(_numbers)}"
            return stack.enter_context(Fleet.create(name, specs, report=print))

        yield make


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with the packages for all suites, built anew when their sources are newer."""
    subprocess.run(["make", "--silent", "packages-of-all-suites"], check=True, cwd=REPOSITORY)
    return REPOSITORY / "dist"
