"""A host that becomes the next Debian while its agent enforces."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kquota import __version__
from tests.packaging.suite import DIST, Host

pytestmark = pytest.mark.long

APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qy", "-o", "Dpkg::Options::=--force-confold")
DECISION = "/run/kquota/decision.json"


@pytest.fixture(scope="session", params=["bookworm"])
def suite(request: pytest.FixtureRequest) -> str:
    """The suite that the host has before."""
    name: str = request.param
    return name


@pytest.fixture
def enforcing(host: Host, agent_package: Path) -> None:
    """The host enforces, and apt knows the next Debian."""
    host.dpkg("-i", agent_package)
    host.write(DECISION, '{"sequence": 1, "mode": "enforce"}\n')
    sources = host.path("/etc/apt/sources.list")
    sources.write_text(sources.read_text("utf-8").replace("bookworm", "trixie"), "utf-8")
    shutil.copy("/etc/resolv.conf", host.path("/etc/resolv.conf"))
    host.run(*APT, "update")


def test_the_agent_stays_with_its_python_until_its_next_package_comes(host: Host, enforcing: None) -> None:
    host.run(*APT, "full-upgrade")
    assert host.run("python3", "-c", "import sys; print(sys.version_info[:2])").stdout == "(3, 13)\n"
    assert host.run("dpkg-query", "-f", "${Version}", "-W", "kquota").stdout == f"{__version__}-1~deb12"
    assert host.run("kquota", "--version").stdout == f"kquota {__version__}\n"
    host.run(*APT, "autoremove")
    host.run("kquota", "--version")
    (package,) = DIST.glob(f"kquota_{__version__}-1~deb13_*.deb")
    host.dpkg("-i", package)
    assert host.path("/opt/kquota/bin/python3").readlink() == Path("/usr/bin/python3.13")
    host.run("kquota", "--version")
