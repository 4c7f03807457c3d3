"""Hosts for the tests: each test or module has its own fleet, which is removed at the end."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from testbed.hosts.fleet import Fleet
from testbed.hosts.rollout import SHARED, play, write_inventory
from testbed.hosts.spec import HostSpec, Suite, VolumeSpec
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.process_lists import secrets_of_scenarios, watched
from tests.unit.repository.tree import source_files

REPOSITORY = Path(__file__).resolve().parents[2]
MakeFleet = Callable[[Sequence[HostSpec]], Fleet]
_numbers = itertools.count(1)


class MakeKafka(Protocol):
    """Boots hosts of these names and volumes, with Kafka on each; returns them, and the inventory for plays.

    `brokers` is for several of them on a host; see `write_inventory`.
    """

    def __call__(
        self,
        names: Sequence[str],
        suite: Suite,
        volumes: tuple[VolumeSpec, ...],
        brokers: Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
    ) -> tuple[Fleet, Path]: ...


@pytest.fixture(scope="module")
def make_fleet() -> Iterator[MakeFleet]:
    """`make_fleet(specs)` boots hosts; the tests of a module may share them."""
    with ExitStack() as stack:

        def make(specs: Sequence[HostSpec]) -> Fleet:
            name = f"test-{os.getpid()}-{next(_numbers)}"
            return stack.enter_context(Fleet.create(name, specs, report=print))

        yield make


@pytest.fixture(scope="module")
def make_kafka(make_fleet: MakeFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeKafka]:
    """Kafka on hosts, as operators run it before kquota. A secret in a process list is an error."""

    def make(
        names: Sequence[str],
        suite: Suite,
        volumes: tuple[VolumeSpec, ...],
        brokers: Mapping[str, tuple[str, Mapping[str, object]]] | None = None,
    ) -> tuple[Fleet, Path]:
        shows = {"/opt/kafka/libs": ensure_kafka_runtime().jars}
        fleet = make_fleet([HostSpec(name=name, suite=suite, volumes=volumes, shows=shows) for name in names])
        inventory = write_inventory(fleet, tmp_path_factory.mktemp("inventory"), brokers)
        play(inventory, SHARED / "prepare.yml")
        return fleet, inventory

    with watched(secrets_of_scenarios()) as end:
        yield make
        assert end() == []


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with the packages for Debian's suites, built again if their sources are newer."""
    subprocess.run(["make", "--silent", "packages-of-debian"], check=True, cwd=REPOSITORY)
    return REPOSITORY / "dist"


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball of the Ansible collection, as a release has it."""
    folder = tmp_path_factory.mktemp("collection")
    for path in source_files("*"):
        copy = folder / "source" / path.relative_to(REPOSITORY)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy, follow_symlinks=False)
    environment = os.environ | {"SOURCE_DATE_EPOCH": "0"}
    make = [REPOSITORY / "tools/release/collection.sh", folder / "source", folder]
    subprocess.run(make, check=True, env=environment)
    (made,) = folder.glob("*.tar.gz")
    return made
