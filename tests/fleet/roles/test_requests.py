"""With the site's own authority: requests on the control host, and which certificates the role installs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID as Use
from jinja2 import Environment

from kquota.trust.signer import FileSigner, SigningFiles
from tests.fleet.roles.plays import PROGRAMS, PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

KEY_PAIR = [
    {"ansible.builtin.include_role": {"name": "kquota_tls", "tasks_from": "install_key_pair", "public": True}}
]
NOW = datetime.now(UTC)
SUBJECT = "CN=kquota-agent,O=Example"


class Site:
    """A site with a root, an issuer below it, and brokers that are directories of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, folder / "kquota-requests"
        self._keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("root", "issuer", "other")}
        for name, by in (("root", "root"), ("issuer", "root"), ("other", "other")):
            authority = self._signed(f"CN={name}", self._keys[name].public_key(), by, authority=True)
            (folder / f"{name}.pem").write_bytes(authority.public_bytes(Encoding.PEM))

    def _signed(
        self,
        subject: str,
        key: Any,
        by: str,
        *,
        authority: bool = False,
        uri: str = "",
        use: x509.ObjectIdentifier = Use.CLIENT_AUTH,
        until: timedelta = timedelta(days=90),
    ) -> x509.Certificate:
        name, issuer = x509.Name.from_rfc4514_string(subject), x509.Name.from_rfc4514_string(f"CN={by}")
        builder = (
            x509.CertificateBuilder(issuer, name, key, x509.random_serial_number())
            .not_valid_before(NOW - timedelta(days=9))
            .not_valid_after(NOW + until)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if not authority:
            builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        if uri:
            names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self._keys[by], hashes.SHA256())

    def request(self, host: str) -> x509.CertificateSigningRequest:
        return x509.load_pem_x509_csr((self.requests / f"{host}.csr").read_bytes())

    def sign(self, host: str, **but: Any) -> None:
        """Put a certificate for the host's request, with its intermediate authority, into the folder."""
        request = self.request(host)
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        (uri,) = names.get_values_for_type(x509.UniformResourceIdentifier)
        wanted = {"subject": request.subject.rfc4514_string(), "key": request.public_key(), "by": "issuer"}
        signed = self._signed(**{**wanted, "uri": uri, **but})
        intermediate = (self.folder / "issuer.pem").read_bytes()
        (self.requests / f"{host}.pem").write_bytes(signed.public_bytes(Encoding.PEM) + intermediate)

    def run(self, hosts: Mapping[str, str], **more: object) -> str:
        """Run the role for hosts with the ids of their brokers; return Ansible's output."""
        found = {
            name: {
                "kquota_tls_directory": str(self.folder / name / "tls"),
                "kquota_callback_node": {"node_id": node_id},
            }
            for name, node_id in hosts.items()
        }
        local = {"ansible_connection": "local", "ansible_python_interpreter": str(PROGRAMS / "python")}
        inventory = self.folder / "hosts.yml"
        inventory.write_text(json.dumps({"kafka_brokers": {"hosts": found, "vars": local}}))
        variables = {
            "kquota_tls_csr": True,
            "kquota_tls_subject": "/O=Example/CN=kquota-agent",
            "kquota_tls_group": "root",
            "kquota_tls_trusted_files": [str(self.folder / "root.pem")],
            "kquota_tls_signer_files": [str(self.folder / "issuer.pem")],
        }
        return run_play(self.folder, KEY_PAIR, {**variables, **more}, inventory=str(inventory))

    def signer(self, host: str, broker_id: int) -> FileSigner:
        tls = self.folder / host / "tls"
        files = SigningFiles(tls / "current/agent.pem", tls / "current/agent.key", tls / "signers.pem")
        return FileSigner(files, broker_id)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.long
def test_a_play_stops_until_the_certificates_are_signed_and_then_installs_them(site: Site) -> None:
    hosts = {"kafka-1": "1", "kafka-2": "22"}
    with pytest.raises(PlayFailed, match=r"kquota-requests\s+on\s+the\s+control\s+host\s+has\s+no") as failed:
        site.run(hosts)
    assert all(f"certificate for {host} yet" in " ".join(str(failed.value).split()) for host in hosts)
    assert {file.name for file in site.requests.iterdir()} == {"kafka-1.csr", "kafka-2.csr"}
    assert all(b"PRIVATE KEY" not in file.read_bytes() for file in site.requests.iterdir())
    asked = {host: site.request(host) for host in hosts}
    assert {request.subject.rfc4514_string() for request in asked.values()} == {SUBJECT}

    site.sign("kafka-1", uri="kquota://*/agent/11")
    site.sign("kafka-2")
    with pytest.raises(PlayFailed) as failed:
        site.run(hosts)
    said = " ".join(str(failed.value).split())
    assert "kafka-1.pem on the control host does not fit kafka-1" in said
    assert "it does not name the broker by URI:kquota://*/agent/1. Have your authority sign" in said
    assert not (site.folder / "kafka-1/tls/current").exists()
    signer = site.signer("kafka-2", 22)
    assert signer.doubt(NOW) is None
    assert (
        len(x509.load_pem_x509_certificates((site.folder / "kafka-2/tls/current/agent.pem").read_bytes()))
        == 2
    )
    assert site.request("kafka-1") == asked["kafka-1"], "what people sign must go on fitting the key"
    assert {file.name for file in site.requests.iterdir()} == {"kafka-1.csr", "kafka-1.pem", "kafka-2.pem"}

    # Of the renewal the play only warns, and the certificate in the folder is the former one.
    site.sign("kafka-1", until=timedelta(days=4))
    said = site.run(hosts)
    site.signer("kafka-1", 1)
    assert "[WARNING]" not in said
    said = " ".join(site.run(hosts).split())
    assert "[WARNING]" in said
    assert "no certificate for kafka-1 yet" in said
    assert "no certificate for kafka-2 yet" not in said
    assert site.request("kafka-1").public_key() != asked["kafka-1"].public_key()


OTHERS_KEY = ec.generate_private_key(ec.SECP256R1()).public_key()
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another key": ({"key": OTHERS_KEY}, "it is for another key than that of the request"),
    "another subject": ({"subject": "CN=kquota-agent,O=Else"}, "is not /O=Example/CN=kquota-agent"),
    "another broker": (
        {"uri": "kquota://*/agent/11"},
        "it does not name the broker by URI:kquota://*/agent/1",
    ),
    "no broker": ({"uri": ""}, "it does not name the broker by URI:kquota://*/agent/1"),
    "a server's": ({"use": Use.SERVER_AUTH}, "as a client's certificate it does not lead to"),
    "ended": ({"until": timedelta(days=-1)}, "certificate has expired"),
    "an authority's": ({"authority": True}, "it is an authority"),
    "of a stranger": ({"by": "other"}, "it does not lead to kquota_tls_trusted_files"),
    "of no signer": ({"by": "root"}, "no authority in kquota_tls_signer_files has issued it"),
}


def checked(site: Site, certificate: str, former: str = "missing", **cluster: str) -> tuple[int, str]:
    """Run the role's check of a certificate, for the key in the site's folder; return status and sentence."""
    role = REPOSITORY / "roles/kquota_tls"
    tasks = yaml.safe_load((role / "tasks/install_requested.yml").read_text())
    (check,) = [task for task in tasks if task["name"] == "Request | Check the certificate with the key"]
    whole = yaml.safe_load((role / "vars/main.yml").read_text())["kquota_tls_agent_uri_pattern"]
    pattern = Environment().from_string(whole.replace(" | regex_escape", ""))
    given = [
        certificate,
        str(site.folder),
        str(site.folder / former),
        (site.folder / "root.pem").read_text(),
        (site.folder / "issuer.pem").read_text(),
        "/O=Example/CN=kquota-agent",
        pattern.render(kquota_tls_node_id="1", **cluster),
        "URI:kquota://*/agent/1",
    ]
    command = [*check["ansible.builtin.command"]["argv"][:4], *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.strip()


@pytest.fixture
def asked(site: Site) -> Site:
    """A site with the request of one host, kafka-1."""
    key = ec.generate_private_key(ec.SECP256R1())
    (site.folder / "agent.key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier("kquota://*/agent/1")])
    builder = x509.CertificateSigningRequestBuilder(x509.Name.from_rfc4514_string(SUBJECT))
    request = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    site.requests.mkdir()
    (site.requests / "kafka-1.csr").write_bytes(request.public_bytes(Encoding.PEM))
    return site


@pytest.mark.parametrize("name", WRONG)
def test_a_certificate_that_does_not_fit_is_named_and_not_installed(name: str, asked: Site) -> None:
    but, sentence = WRONG[name]
    asked.sign("kafka-1", **but)
    status, said = checked(asked, (asked.requests / "kafka-1.pem").read_text())
    assert status == 3
    assert sentence in said


def test_a_certificate_fits_with_the_cluster_s_id_and_is_the_former_one_if_that_is_installed(
    asked: Site,
) -> None:
    asked.sign("kafka-1", uri="kquota://KNFZgGqwTBmh-wGvSa_PZw/agent/1")
    assert checked(asked, (asked.requests / "kafka-1.pem").read_text()) == (0, "")
    fits = (asked.requests / "kafka-1.pem").read_text()
    assert checked(asked, fits, kquota_tls_cluster_id="KNFZgGqwTBmh-wGvSa_PZw")[0] == 0
    assert checked(asked, fits, kquota_tls_cluster_id="another")[0] == 3
    assert checked(asked, "PKCS7") == (3, "it is no certificate in PEM")
    asked.sign("kafka-1", key=OTHERS_KEY)
    former = (asked.requests / "kafka-1.pem").read_text()
    assert checked(asked, former, "kquota-requests/kafka-1.pem") == (4, "")


def test_the_site_s_authorities_have_to_be_named(site: Site) -> None:
    with pytest.raises(PlayFailed, match=r"kquota_tls_signer_files\s+is\s+empty[^$]*nothing\s+was"):
        site.run({"kafka-1": "1"}, kquota_tls_signer_files=[])
    assert not site.requests.exists()
