"""The runbook's steps after the authority's key was stolen: no report stops counting on the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota.trust.authorities import AuthorityFile
from kquota.trust.signer import FileSigner, SigningFiles
from tests.fleet.roles.authority import variables_for
from tests.fleet.roles.plays import PROGRAMS, run_play

ROLE = [
    {"ansible.builtin.include_role": {"name": "kquota_tls", "tasks_from": part, "public": True}}
    for part in ("install_authority", "install_key_pair")
]
HOSTS = {"kafka-1": 1, "kafka-2": 2}


def step(folder: Path, *options: str, **more: object) -> None:
    """Run the role for both hosts, as the rollout does."""
    found = {
        name: {"kquota_tls_directory": str(folder / name), "kquota_callback_node": {"node_id": broker_id}}
        for name, broker_id in HOSTS.items()
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    inventory = folder / "hosts.yml"
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": found, "vars": local}}))
    common = variables_for(folder)
    del common["kquota_tls_directory"]
    run_play(folder, ROLE, {**common, **more}, *options, inventory=str(inventory))


def signer(folder: Path, host: str) -> FileSigner:
    pair = folder / host / "current"
    files = SigningFiles(pair / "agent.pem", pair / "agent.key", folder / host / "signers.pem")
    return FileSigner(files, HOSTS[host])


def all_count(folder: Path) -> None:
    """Check that each host counts the reports of all."""
    for writer in HOSTS:
        assert signer(folder, writer).doubt(datetime.now(UTC)) is None
        certificate = signer(folder, writer).certificate
        for reader in HOSTS:
            assert AuthorityFile(folder / reader / "signers.pem").certificate(certificate), (writer, reader)


@pytest.mark.long
def test_a_stolen_authority_is_replaced_without_a_moment_in_which_a_report_does_not_count(
    tmp_path: Path,
) -> None:
    step(tmp_path)
    all_count(tmp_path)
    stolen = {host: signer(tmp_path, host).certificate for host in HOSTS}
    old, new = tmp_path / "authority", tmp_path / "kquota-ca-2"
    (elsewhere := tmp_path / "elsewhere").mkdir()
    run_play(elsewhere, ROLE[:1], {**variables_for(tmp_path), "kquota_tls_ca_dir": str(new)})

    for host in HOSTS:
        step(tmp_path, "--limit", host, kquota_tls_signer_files=[str(new / "issuer.pem")])
        all_count(tmp_path)
    assert {host: signer(tmp_path, host).certificate for host in HOSTS} == stolen

    both: dict[str, object] = {
        "kquota_tls_ca_dir": str(new),
        "kquota_tls_trusted_files": [str(old / "ca.pem")],
        "kquota_tls_signer_files": [str(old / "issuer.pem")],
    }
    for host in HOSTS:
        step(tmp_path, "--limit", host, kquota_tls_renew=True, **both)
        all_count(tmp_path)

    step(tmp_path, kquota_tls_ca_dir=str(new))
    all_count(tmp_path)
    for host in HOSTS:
        authorities = AuthorityFile(tmp_path / host / "signers.pem")
        assert all(authorities.certificate(certificate) is None for certificate in stolen.values())
