"""Packages built from this tree, and hosts to try them on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota import __version__
from tests.packaging.suite import DIST, REPOSITORY, Host

DEBIAN = {"bookworm": "12", "trixie": "13"}


@pytest.fixture(scope="session")
def built() -> None:
    """Have both packages built, the agent's for every suite, when their sources are newer."""
    subprocess.run(["make", "--silent", "packages-of-all-suites"], check=True, cwd=REPOSITORY)


@pytest.fixture(scope="session", params=sorted(DEBIAN))
def suite(request: pytest.FixtureRequest) -> str:
    """The code name of each Debian suite that there is a package for."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def agent_package(built: None, suite: str) -> Path:
    """The agent's package for the suite."""
    (package,) = DIST.glob(f"kquota_{__version__}-1~deb{DEBIAN[suite]}_*.deb")
    return package


@pytest.fixture(scope="session")
def callback_package(built: None) -> Path:
    """The plug-in's package."""
    return DIST / f"kquota-callback_{__version__}_all.deb"


@pytest.fixture(scope="module")
def host(suite: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host with what the packages depend on, and no more. The tests of a module share it."""
    made = subprocess.run(
        [REPOSITORY / "tools/packages/suite-root.sh", suite, "run"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    root = tmp_path_factory.mktemp("host") / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", made.stdout.strip(), root], check=True)
    yield Host(root)
    shutil.rmtree(root.parent)
