"""The plug-in, which validates what the roles write; and an authority with an agent's first certificate."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path

import pytest
from cryptography import x509

from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.roles.authority import ISSUE, certificate, variables_for
from tests.fleet.roles.plays import run_tasks


@pytest.fixture(scope="session")
def plug_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The role's variables with the paths of the plug-in and Kafka on this machine."""
    home: Path = tmp_path_factory.mktemp("kafka")
    (home / "libs").symlink_to(ensure_kafka_runtime(report=print).jars)
    return {
        "kquota_callback_jar": str(find_callback_jar()),
        "kquota_callback_kafka_home": str(home),
        "kquota_callback_broker_user": pwd.getpwuid(os.geteuid()).pw_name,
        "kquota_callback_broker_group": str(os.getegid()),
    }


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, object]:
    """The variables of the role kquota_tls, whose files are then in the folder of the test."""
    return variables_for(tmp_path)


@pytest.fixture(scope="session")
def issued_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority and an agent's first certificate."""
    folder: Path = tmp_path_factory.mktemp("issued")
    assert run_tasks(folder, ISSUE, variables_for(folder)) > 0
    return folder


@pytest.fixture
def issued(issued_once: Path, tmp_path: Path) -> x509.Certificate:
    """A copy of them for the test; returns the certificate."""
    for name in ("authority", "etc"):
        shutil.copytree(issued_once / name, tmp_path / name, symlinks=True)
    return certificate(tmp_path)
