"""The authority of the role kquota_tls, with the openssl of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.fleet.roles.authority import ISSUE, certificate, chain, verify
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play, run_playbook, run_tasks
from tests.unit.repository.tree import REPOSITORY


def test_each_agent_gets_a_key_and_a_certificate_that_are_replaced_together(
    tmp_path: Path, variables: dict[str, object], issued: x509.Certificate
) -> None:
    first = issued
    assert first.subject.rfc4514_string() == "CN=kquota-agent,O=kquota"
    usage = first.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert len(chain(tmp_path)) == 2, "the truststores have the root alone"
    verify(tmp_path)
    key = load_pem_private_key((tmp_path / "etc/tls/current/agent.key").read_bytes(), None)
    assert key.public_key() == first.public_key()
    assert (tmp_path / "etc/tls/current/agent.key").stat().st_mode & 0o777 == 0o640
    # The mode of the agent's package and role, so that they do not change it in turn at each run.
    assert (tmp_path / "etc").stat().st_mode & 0o777 == 0o751
    assert (tmp_path / "etc/tls").stat().st_mode & 0o777 == 0o750

    (tmp_path / "etc").chmod(0o755)
    assert run_tasks(tmp_path, ISSUE, variables) == 0
    assert certificate(tmp_path) == first
    assert (tmp_path / "etc").stat().st_mode & 0o777 == 0o755, "a directory that is there keeps its mode"

    # A certificate that expires within this time is replaced.
    assert run_tasks(tmp_path, ISSUE, {**variables, "kquota_tls_renew_days": 400}) > 0
    second = certificate(tmp_path)
    assert second.serial_number != first.serial_number
    assert second.public_key() != first.public_key()
    verify(tmp_path)
    key = load_pem_private_key((tmp_path / "etc/tls/current/agent.key").read_bytes(), None)
    assert key.public_key() == second.public_key()


@pytest.mark.long
def test_the_new_and_the_previous_pair_stay_even_if_clocks_were_wrong(
    tmp_path: Path, variables: dict[str, object], issued: x509.Certificate
) -> None:
    """A control host's clock was in the future when it named pairs."""
    first = (tmp_path / "etc/tls/current").resolve()
    early, late = first.with_name("20010101T000000"), first.with_name("29990101T000000")
    early.mkdir()
    late.mkdir()
    run_tasks(tmp_path, ISSUE, {**variables, "kquota_tls_renew": True})
    assert certificate(tmp_path) != issued
    assert not early.exists()
    assert late.exists()


@pytest.mark.usefixtures("issued")
def test_a_certificate_of_an_unknown_authority_is_not_replaced(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    """A control host without the directory has created its own authority."""
    files = {path: path.read_bytes() for path in (tmp_path / "etc").rglob("*") if path.is_file()}
    elsewhere = {**variables, "kquota_tls_ca_dir": str(tmp_path / "elsewhere"), "kquota_tls_renew": True}
    with pytest.raises(PlayFailed, match=r"agent\.pem\s+on\s+localhost\s[^$]*kquota_ca_dir"):
        run_tasks(tmp_path, ISSUE, elsewhere)
    assert {path: path.read_bytes() for path in (tmp_path / "etc").rglob("*") if path.is_file()} == files


@pytest.mark.long
@pytest.mark.usefixtures("issued")
def test_another_authority_replaces_the_first_if_it_is_trusted_or_replaced_on_purpose(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    elsewhere = {**variables, "kquota_tls_ca_dir": str(tmp_path / "elsewhere"), "kquota_tls_renew": True}
    known = {**elsewhere, "kquota_tls_trusted_files": [str(tmp_path / "authority/ca.pem")]}
    run_tasks(tmp_path, ISSUE, known)
    verify(tmp_path)
    run_tasks(tmp_path, ISSUE, {**variables, "kquota_tls_replace": True})
    verify(tmp_path)


def test_the_authority_belongs_to_the_user_of_the_play_even_if_the_inventory_sets_become(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    inventory = tmp_path / "hosts.yml"
    everybody = {"ansible_become": True, "ansible_become_exe": "/bin/false", "ansible_become_user": "nobody"}
    hosts = {"a": {"ansible_connection": "local"}}
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": everybody}}))
    task = {"ansible.builtin.include_role": {"name": "kquota_tls", "tasks_from": "install_authority"}}
    run_play(tmp_path, [task], variables, inventory=str(inventory))
    assert (tmp_path / "authority/issuer.key").exists()


def test_certificates_that_are_not_of_the_role_are_not_rotated(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    inventory.write_text(json.dumps({"kafka_brokers": {"hosts": {"a": {}}, "vars": local}}))
    given = {"ansible_become": False, "kquota_ca_dir": str(tmp_path / "authority")}
    with pytest.raises(PlayFailed, match=r"kquota_tls\s+is\s+not\s+set"):
        run_playbook(
            tmp_path, REPOSITORY / "playbooks/rotate_certificates.yml", given, inventory=str(inventory)
        )
    assert not (tmp_path / "authority").exists()


@pytest.mark.usefixtures("issued")
def test_a_removal_also_removes_the_parent_directory_if_it_is_empty(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    remove = (("kquota_tls", "remove"),)
    another = tmp_path / "etc/agent.yml"
    another.touch()
    assert run_tasks(tmp_path, remove, variables) > 0
    assert list((tmp_path / "etc").iterdir()) == [another]
    another.unlink()
    assert run_tasks(tmp_path, remove, variables) > 0
    assert not (tmp_path / "etc").exists()
    assert run_tasks(tmp_path, remove, variables) == 0
