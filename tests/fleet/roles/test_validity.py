"""When certificates of the role kquota_tls end, and when it renews them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from tests.fleet.roles.authority import PASSPHRASE, variables_for
from tests.fleet.roles.plays import PROGRAMS, run_play
from tests.fleet.roles.test_authority import OWN_NAME, issuer_key

ROLE = [
    {"ansible.builtin.include_role": {"name": "kquota_tls", "tasks_from": part, "public": True}}
    for part in ("install_authority", "install_key_pair")
]
READ = [
    {"ansible.builtin.include_role": {"name": "kquota_tls", "tasks_from": "facts", "public": True}},
    {"ansible.builtin.debug": {"msg": "{{ inventory_hostname }}={{ kquota_tls_due }}"}},
]


def run_for(
    folder: Path,
    tasks: Sequence[Mapping[str, object]],
    given: Mapping[str, Mapping[str, object]],
) -> str:
    """Run tasks for hosts with agents of their own, all on this machine; return Ansible's output."""
    found = {name: {"kquota_tls_directory": str(folder / name), **own} for name, own in given.items()}
    local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
    file = folder / "hosts.yml"
    file.write_text(json.dumps({"kafka_brokers": {"hosts": found, "vars": local}}))
    variables = {
        name: value for name, value in variables_for(folder).items() if name != "kquota_tls_directory"
    }
    return run_play(folder, tasks, variables, inventory=str(file))


def validity(folder: Path, host: str) -> timedelta:
    found = x509.load_pem_x509_certificate((folder / host / "current/agent.pem").read_bytes())
    return found.not_valid_after_utc - found.not_valid_before_utc


def expected(host: str, days: float) -> timedelta:
    """Up to a tenth less, by the first 32 bits of the name's hash."""
    part = int.from_bytes(sha256(host.encode()).digest()[:4]) / 2**32
    return timedelta(days=days) * (1 - part / 10)


def test_certificates_of_one_run_end_at_different_times_which_their_hosts_names_decide(
    tmp_path: Path,
) -> None:
    run_for(tmp_path, ROLE, {"kafka-1": {}, "kafka-2": {}, "brief": {"kquota_tls_days": 0.002}})
    for host, days in (("kafka-1", 397), ("kafka-2", 397), ("brief", 0.002)):
        assert abs(validity(tmp_path, host) - expected(host, days)) <= timedelta(seconds=3)
    assert abs(expected("kafka-1", 397) - expected("kafka-2", 397)) > timedelta(days=1)


def put(
    folder: Path,
    host: str,
    elapsed: timedelta,
    whole: timedelta,
    *,
    broker_id: int | None = None,
    passphrase: str = PASSPHRASE,
) -> None:
    """Give a host a certificate of the authority of which this much has elapsed."""
    issuer = x509.load_pem_x509_certificate((folder / "authority/issuer.pem").read_bytes())
    key, start = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC) - elapsed
    names: list[x509.GeneralName] = [OWN_NAME]
    if broker_id is not None:
        names.append(x509.UniformResourceIdentifier(f"kquota://*/agent/{broker_id}"))
    subject = x509.Name.from_rfc4514_string("CN=kquota-agent,O=kquota")
    signed = (
        x509.CertificateBuilder(issuer.subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + whole)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key(folder, passphrase), hashes.SHA256())
    )
    pair = folder / host / "20010101T000000"
    pair.mkdir(parents=True)
    (pair.parent / "current").symlink_to(pair.name)
    chain = b"".join(one.public_bytes(Encoding.PEM) for one in (signed, issuer))
    (pair / "agent.pem").write_bytes(chain)
    (pair / "agent.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


@pytest.mark.usefixtures("issued")
def test_a_certificate_is_due_when_two_fifths_of_its_validity_are_left(tmp_path: Path) -> None:
    day, minute = timedelta(days=1), timedelta(minutes=1)
    ages = {
        "kept": (53 * day, 90 * day),
        "due": (55 * day, 90 * day),
        "kept-of-minutes": (52 * minute, 90 * minute),
        "due-of-minutes": (55 * minute, 90 * minute),
        "kept-for-its-own-time": (55 * day, 90 * day),
        "due-for-its-own-time": (53 * day, 90 * day),
    }
    for name, age in ages.items():
        put(tmp_path, name, *age)
    own = {"kept-for-its-own-time": 34, "due-for-its-own-time": 38}
    said = run_for(
        tmp_path, READ, {name: {"kquota_tls_renew_days": own[name]} if name in own else {} for name in ages}
    )
    due = {name for name in ages if f"{name}=True" in said}
    assert due == {name for name in ages if name.startswith("due")}
    assert {name for name in ages if f"{name}=False" in said} == set(ages) - due
