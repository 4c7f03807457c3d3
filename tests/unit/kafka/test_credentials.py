"""Reading our own certificate, which takes a process that a machine may not have at the moment."""

from __future__ import annotations

import errno
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kquota.kafka import credentials
from kquota.kafka.credentials import AGAIN_SECONDS, CertificateReader, CredentialFiles

FOUND = {
    "subject": "CN=agent",
    "not_before": "2026-01-01T00:00:00+00:00",
    "not_after": "2027-01-01T00:00:00+00:00",
}
NO_DESCRIPTORS = OSError(errno.EMFILE, "Too many open files")
NO_ANSWER = subprocess.TimeoutExpired("certificate_process", 20)


class Machine:
    """Stands for the process, whose outcomes are given, and for the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | int) -> None:
        self.outcomes = list(outcomes)
        self.seconds = 0.0
        monkeypatch.setattr(subprocess, "run", self._run)
        monkeypatch.setattr(credentials, "_READER", CertificateReader(lambda: self.seconds))

    def _run(self, command: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return subprocess.CompletedProcess(command, outcome, stdout=json.dumps(FOUND))


@pytest.fixture
def files(tmp_path: Path) -> CredentialFiles:
    path = tmp_path / "agent.pem"
    path.write_text("a certificate")
    return CredentialFiles({"ssl.certificate.location": str(path)})


@pytest.mark.parametrize("failure", [NO_DESCRIPTORS, NO_ANSWER, -9], ids=["descriptors", "time", "killed"])
def test_a_certificate_that_could_not_be_read_for_want_of_resources_is_read_later(
    monkeypatch: pytest.MonkeyPatch, files: CredentialFiles, failure: Exception | int
) -> None:
    machine = Machine(monkeypatch, failure, 0)
    assert files.client_certificate() is None
    machine.seconds = AGAIN_SECONDS - 1
    assert files.client_certificate() is None, "no process for each error of a connection"
    machine.seconds = AGAIN_SECONDS
    found = files.client_certificate()
    assert found is not None
    assert found.subject == "CN=agent"
    machine.seconds = 10 * AGAIN_SECONDS
    assert files.client_certificate() == found, "a process for each file is enough"


def test_a_file_without_a_certificate_is_read_again_once_it_was_replaced(
    monkeypatch: pytest.MonkeyPatch, files: CredentialFiles, tmp_path: Path
) -> None:
    machine = Machine(monkeypatch, 1, 0)
    assert files.client_certificate() is None
    machine.seconds = 10 * AGAIN_SECONDS
    assert files.client_certificate() is None
    (tmp_path / "agent.pem").write_text("another certificate")
    assert files.client_certificate() is not None
