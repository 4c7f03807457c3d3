"""The authority of the role kquota_tls signs for kquota alone; its keys and its passphrase are not shown."""

from __future__ import annotations

import ipaddress
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.roles.authority import ISSUE, PASSPHRASE, certificate, chain, root, verify
from tests.fleet.roles.plays import PlayFailed, run_play, run_tasks

AUTHORITY = ["ca.pem", "client.cnf", "issuer.key", "issuer.pem"]
OWN_NAME = x509.DNSName("kquota.invalid")


class Forgery(NamedTuple):
    """A certificate that the owner of the issuer's key signs."""

    subject: str
    names: tuple[x509.GeneralName, ...] = ()
    usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH


ALLOWED = {
    "an operator": Forgery("CN=kquota-operator alice,O=kquota", (OWN_NAME,)),
    "an agent with its report's URI": Forgery(
        "CN=kquota-agent,O=kquota",
        (OWN_NAME, x509.UniformResourceIdentifier("kquota://KNFZgGqwTBmh-wGvSa_PZw/agent/1")),
    ),
}
REFUSED = {
    "a broker": Forgery("CN=kafka-broker"),
    "a broker, as if it were an agent": Forgery("CN=kafka-broker", (OWN_NAME,)),
    "a name that is not one of a host": Forgery("CN=Kafka Broker"),
    "another organization": Forgery("CN=kafka-broker,O=Example", (OWN_NAME,)),
    "kquota's organization below another": Forgery("CN=kafka-broker,O=kquota,O=Example", (OWN_NAME,)),
    "a host in the common name": Forgery("CN=kafka-1.example.org,O=kquota"),
    "a host": Forgery("CN=kquota-agent,O=kquota", (OWN_NAME, x509.DNSName("kafka-1"))),
    "an IPv4 address": Forgery(
        "CN=kquota-agent,O=kquota", (OWN_NAME, x509.IPAddress(ipaddress.ip_address("198.18.0.1")))
    ),
    "an IPv6 address": Forgery(
        "CN=kquota-agent,O=kquota", (OWN_NAME, x509.IPAddress(ipaddress.ip_address("::1")))
    ),
    "a mailbox": Forgery("CN=kquota-agent,O=kquota", (OWN_NAME, x509.RFC822Name("admin@example.org"))),
}


def issuer_key(folder: Path, passphrase: str = PASSPHRASE) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key((folder / "authority/issuer.key").read_bytes(), passphrase.encode())
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def forge(folder: Path, forgery: Forgery, to: Path) -> None:
    """Write a certificate that the issuer's key has signed, and the issuer's."""
    issuer = x509.load_pem_x509_certificate((folder / "authority/issuer.pem").read_bytes())
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    now = datetime.now(UTC)
    subject = x509.Name.from_rfc4514_string(forgery.subject)
    builder = (
        x509.CertificateBuilder(issuer.subject, subject, key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([forgery.usage]), critical=False)
    )
    if forgery.names:
        builder = builder.add_extension(x509.SubjectAlternativeName(forgery.names), critical=False)
    signed = builder.sign(issuer_key(folder), hashes.SHA256())
    to.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in (signed, issuer)))


def openssl_accepts(folder: Path, presented: Path, *options: str) -> bool:
    command = ["openssl", "verify", "-CAfile", folder / "authority/ca.pem", "-untrusted", presented, *options]
    return subprocess.run([*command, presented], check=False, capture_output=True).returncode == 0


def java_says(folder: Path, *presented: Path) -> list[str]:
    program = Path(__file__).with_name("TrustedChains.java")
    command = [ensure_kafka_runtime(report=print).java, program, folder / "authority/ca.pem", *presented]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture(scope="module")
def verdicts(issued_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[bool, str]]:
    """Whether openssl accepts a chain and what Java says to it, for the agent's own and forged ones."""
    folder = tmp_path_factory.mktemp("forged")
    files = {"the agent": issued_once / "etc/tls/current/agent.pem"}
    for number, (name, forgery) in enumerate({**ALLOWED, **REFUSED}.items()):
        files[name] = folder / f"{number}.pem"
        forge(issued_once, forgery, files[name])
    said = zip(files.items(), java_says(issued_once, *files.values()), strict=True)
    return {name: (openssl_accepts(issued_once, file), java) for (name, file), java in said}


@pytest.mark.parametrize("name", ["the agent", *ALLOWED])
def test_brokers_accept_agents_and_operators(name: str, verdicts: Mapping[str, tuple[bool, str]]) -> None:
    assert verdicts[name] == (True, "accepted")


@pytest.mark.accepts("G13")
@pytest.mark.parametrize("name", REFUSED)
def test_brokers_refuse_other_names_though_the_issuer_has_signed_them(
    name: str, verdicts: Mapping[str, tuple[bool, str]]
) -> None:
    by_openssl, by_java = verdicts[name]
    assert not by_openssl
    assert by_java.startswith("refused: ")


@pytest.mark.accepts("G13")
def test_the_issuer_signs_no_servers_and_no_authorities(issued_once: Path, tmp_path: Path) -> None:
    server = tmp_path / "server.pem"
    forge(issued_once, Forgery("CN=a,O=kquota", (OWN_NAME,), ExtendedKeyUsageOID.SERVER_AUTH), server)
    assert openssl_accepts(issued_once, server)
    assert not openssl_accepts(issued_once, server, "-purpose", "sslserver")
    issuer, presented_root = chain(issued_once)[1], root(issued_once)
    basic = x509.BasicConstraints(ca=True, path_length=0)
    assert issuer.extensions.get_extension_for_class(x509.BasicConstraints).value == basic
    issuer.verify_directly_issued_by(presented_root)


@pytest.fixture
def watched(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Whenever openssl starts: `processes` gets the command lines and environments of all processes, `keys`
    the names of files of the test with a private key.
    """
    folder: Path = tmp_path_factory.mktemp("watched")
    program = folder / "openssl"
    program.write_text(f"""#!/bin/sh
cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ >> {folder}/processes 2>/dev/null
grep --recursive --files-with-matches 'BEGIN.* PRIVATE KEY' {tmp_path} | sed 's|.*/||' >> {folder}/keys
exec {shutil.which("openssl")} "$@"
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


def test_no_other_process_sees_the_passphrase_and_the_root_s_key_is_never_in_a_file(
    tmp_path: Path, variables: dict[str, object], watched: Path
) -> None:
    passphrase = secrets.token_hex()
    tasks = [
        {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}}
        for role, part in ISSUE
    ]
    said = run_play(tmp_path, tasks, {**variables, "kquota_tls_ca_passphrase": passphrase}, "--diff", "-vvv")
    processes = (watched / "processes").read_bytes()
    assert b"openssl\0x509\0-req\0" in processes
    assert b"openssl\0pkey\0-aes-256-cbc\0" in processes
    assert passphrase.encode() not in processes
    assert passphrase not in said
    assert set((watched / "keys").read_text().split()) == {"issuer.key", "agent.key"}

    key = tmp_path / "authority/issuer.key"
    assert sorted(path.name for path in key.parent.iterdir()) == AUTHORITY
    assert key.stat().st_mode & 0o777 == 0o600
    public = chain(tmp_path)[1].public_key()
    assert load_pem_private_key(key.read_bytes(), passphrase.encode()).public_key() == public
    with pytest.raises((TypeError, ValueError)):
        load_pem_private_key(key.read_bytes(), None)
    assert root(tmp_path).public_key() != public
    written = sorted(path.name for path in (tmp_path / "etc").rglob("*.pem"))
    assert written == ["agent.pem", "ca.pem", "signers.pem"]


@pytest.mark.parametrize("passphrase", ["", "correct\nhorse"])
def test_a_new_authority_needs_a_passphrase_of_one_line(
    passphrase: str, tmp_path: Path, variables: dict[str, object]
) -> None:
    with pytest.raises(PlayFailed, match=r"kquota_tls_ca_passphrase\s+is\s+empty\s[^$]*ansible-vault"):
        run_tasks(tmp_path, ISSUE, {**variables, "kquota_tls_ca_passphrase": passphrase})
    assert not (tmp_path / "authority").exists()


def test_a_wrong_passphrase_is_named_and_the_agent_keeps_its_certificate(
    tmp_path: Path, variables: dict[str, object], issued: x509.Certificate
) -> None:
    wrong = {**variables, "kquota_tls_ca_passphrase": "battery staple", "kquota_tls_renew": True}
    with pytest.raises(PlayFailed, match=r"issuer\.key\s[^$]*kquota_tls_ca_passphrase") as failed:
        run_tasks(tmp_path, ISSUE, wrong)
    assert "battery staple" not in str(failed.value)
    assert certificate(tmp_path) == issued


@pytest.mark.parametrize("subject", ["/CN=kquota-agent", "/O=a=b/CN=kquota-agent"])
def test_a_new_authority_is_of_one_organization(
    subject: str, tmp_path: Path, variables: dict[str, object]
) -> None:
    with pytest.raises(PlayFailed, match=rf"kquota_tls_subject\s+is\s+{subject},[^$]*\s/O=NAME/CN=NAME"):
        run_tasks(tmp_path, ISSUE, {**variables, "kquota_tls_subject": subject})
    assert not (tmp_path / "authority").exists()


@pytest.mark.parametrize("subject", ["/O=Example/CN=kquota-agent", "/O=kquota/CN=a+O=b"])
def test_a_subject_that_the_authority_does_not_permit_changes_nothing(
    subject: str, tmp_path: Path, variables: dict[str, object], issued: x509.Certificate
) -> None:
    with pytest.raises(PlayFailed, match=r"kquota_tls_subject\s+is\s[^$]*/O=kquota/CN=NAME"):
        run_tasks(tmp_path, ISSUE, {**variables, "kquota_tls_subject": subject})
    assert certificate(tmp_path) == issued


@pytest.mark.long
def test_a_site_may_choose_its_organization(tmp_path: Path, variables: dict[str, object]) -> None:
    own = {**variables, "kquota_tls_subject": "/O=Example Inc. kquota/OU=a (b)/CN=agent"}
    run_tasks(tmp_path, ISSUE, own)
    assert certificate(tmp_path).subject.rfc4514_string() == "CN=agent,OU=a (b),O=Example Inc. kquota"
    presented = tmp_path / "etc/tls/current/agent.pem"
    assert java_says(tmp_path, presented) == ["accepted"]
    assert run_tasks(tmp_path, ISSUE, own) == 0


@pytest.mark.parametrize("missing", ["ca.pem", "issuer.key"])
@pytest.mark.usefixtures("issued")
def test_what_is_left_of_an_authority_is_kept(
    missing: str, tmp_path: Path, variables: dict[str, object]
) -> None:
    (tmp_path / "authority" / missing).unlink()
    with pytest.raises(PlayFailed, match=r"kquota_tls_ca_dir\s[^$]*Restore\s+the\s+files"):
        run_tasks(tmp_path, ISSUE, variables)
    left = {path.name for path in (tmp_path / "authority").iterdir()}
    assert left == set(AUTHORITY) - {missing}


@pytest.mark.usefixtures("issued")
def test_another_authority_takes_its_place_and_agents_trust_both(
    tmp_path: Path, variables: dict[str, object]
) -> None:
    first = root(tmp_path)
    another = {**variables, "kquota_tls_ca_dir": str(tmp_path / "another")}
    run_tasks(tmp_path, ISSUE, {**another, "kquota_tls_trusted_files": [str(tmp_path / "authority/ca.pem")]})
    trusted = x509.load_pem_x509_certificates((tmp_path / "etc/tls/ca.pem").read_bytes())
    assert len(trusted) == 2
    assert first in trusted
    verify(tmp_path)
