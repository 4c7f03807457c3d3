"""The plug-in, which validates what the roles write; and an authority with an agent's first certificate."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from cryptography import x509

from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.roles.authority import ISSUE, certificate, variables_for
from tests.fleet.roles.plays import PROGRAMS, run_tasks

RESIDENT = Path(__file__).with_name("resident")


@pytest.fixture(scope="session", autouse=True)
def resident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """All plays share a Python with the modules' libraries, and the modules that Ansible has packed."""
    folder = tmp_path_factory.mktemp("resident")
    server, python = folder / "server", PROGRAMS / "python"
    (folder / "packed").mkdir()
    client = shlex.join([str(python), "-IS", str(RESIDENT / "client.py"), str(server), str(python)])
    (folder / "python").write_text(f'#!/bin/sh\nexec {client} "$@"\n')
    (folder / "python").chmod(0o755)
    with (
        pytest.MonkeyPatch.context() as environment,
        Popen([python, RESIDENT / "server.py", server], stdin=PIPE, stdout=PIPE) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        environment.setenv("KQUOTA_TEST_PYTHON", str(folder / "python"))
        environment.setenv("KQUOTA_TEST_PACKED", str(folder / "packed"))
        environment.setenv("ANSIBLE_CALLBACK_PLUGINS", str(RESIDENT / "callback"))
        yield


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
