"""Certificates of operators, which the play operator_certificate.yml issues on the control host."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from kquota.formats.records import TopicKind
from kquota.formats.signature_headers import writer_of
from kquota.trust.authorities import AuthorityFile
from kquota.trust.signer import FileSigner, SigningFiles
from tests.fleet.roles.authority import variables_for
from tests.fleet.roles.plays import PlayFailed, run_playbook
from tests.unit.repository.tree import REPOSITORY

Issue = Callable[..., str]


@pytest.fixture
def issue(tmp_path: Path) -> Issue:
    """Run the play for brokers that do not exist; returns Ansible's output."""
    inventory = tmp_path / "hosts.yml"
    hosts = {"kafka-1": {"ansible_host": "192.0.2.1"}, "kafka-2": {"ansible_host": "192.0.2.2"}}
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": hosts}}))

    def run(**more: object) -> str:
        return run_playbook(
            tmp_path,
            REPOSITORY / "playbooks/operator_certificate.yml",
            {**variables_for(tmp_path), **more},
            inventory=str(inventory),
        )

    return run


@pytest.mark.usefixtures("issued")
def test_an_operator_s_certificate_signs_orders_of_that_name_for_two_days(
    tmp_path: Path, issue: Issue
) -> None:
    said = issue(kquota_operator="jane.doe@example.org", kquota_tls_operator_days=2)
    folder = tmp_path / "kquota-operators"
    certificate, key = (folder / f"jane.doe@example.org.{end}" for end in ("pem", "key"))
    assert str(certificate) in said.replace("\n", "")
    assert sorted(folder.iterdir()) == [key, certificate]
    assert (folder.stat().st_mode & 0o777, key.stat().st_mode & 0o777) == (0o700, 0o600)

    authorities = tmp_path / "etc/tls/signers.pem"
    signer = FileSigner(SigningFiles(certificate, key, authorities))
    assert signer.names == ("kquota://*/operator/jane.doe@example.org",)
    assert signer.doubt(datetime.now(UTC)) is None
    found = AuthorityFile(authorities).certificate(signer.certificate)
    assert found is not None
    assert found.verifies(signer.sign(b"hold"), b"hold")
    assert abs(found.not_after - datetime.now(UTC) - timedelta(days=2)) < timedelta(minutes=5)
    place = ("KNFZgGqwTBmh-wGvSa_PZw", b"hold")
    author = writer_of(found.names, *place, tombstone=False, topic=TopicKind.ORDERS)
    assert author == "operator/jane.doe@example.org"
    issued, issuer = x509.load_pem_x509_certificates(certificate.read_bytes())
    assert issued.subject.rfc4514_string() == "CN=kquota-operator jane.doe@example.org,O=kquota"
    issued.verify_directly_issued_by(issuer)


@pytest.mark.usefixtures("issued")
def test_a_key_with_a_passphrase_is_encrypted_and_a_wrong_one_of_the_authority_leaves_the_former_pair(
    tmp_path: Path, issue: Issue
) -> None:
    issue(kquota_operator="jane", kquota_tls_operator_passphrase="battery staple")
    pair = {path: path.read_bytes() for path in (tmp_path / "kquota-operators").iterdir()}
    files = [tmp_path / "kquota-operators" / name for name in ("jane.pem", "jane.key")]
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in files[1].read_bytes()
    FileSigner(SigningFiles(*files, tmp_path / "etc/tls/signers.pem", "battery staple"))

    with pytest.raises(PlayFailed, match=r"issuer\.key\s[^$]*kquota_tls_ca_passphrase"):
        issue(kquota_operator="jane", kquota_tls_ca_passphrase="wrong")
    assert {path: path.read_bytes() for path in files} == pair


@pytest.mark.parametrize("name", ["", "jane doe", "../jane", "j" * 49])
def test_a_name_that_a_certificate_can_t_name_changes_nothing(
    name: str, tmp_path: Path, issue: Issue
) -> None:
    with pytest.raises(PlayFailed, match=r"kquota_operator\s+is\s[^$]*nothing\s+was\s+changed"):
        issue(kquota_operator=name)
    assert not (tmp_path / "kquota-operators").exists()


def test_an_authority_is_never_created_for_an_operator(tmp_path: Path, issue: Issue) -> None:
    with pytest.raises(PlayFailed, match=r"has\s+no\s+authority[^$]*kquota_ca_dir"):
        issue(kquota_operator="jane")
    assert not (tmp_path / "authority").exists()
