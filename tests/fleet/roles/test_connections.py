"""The certificates of brokers, as openssl verifies them for the agent's preflight."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from plugins.modules.kquota_brokers import look
from tests.fleet.roles.plays import PlayFailed, run_play


class Module:
    """As Ansible's: runs programs."""

    def __init__(self, server: str, authority: Path) -> None:
        self.params = {"servers": [server], "authority": str(authority)}

    def run_command(self, command: list[str], data: str, **_: object) -> tuple[int, str, str]:
        done = subprocess.run(command, input=f"{data}\n", capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr


def certificate(folder: Path, name: str) -> Path:
    """Make a certificate for this name, which is its own authority."""
    made = folder / f"{name[:2]}.pem"
    names = ["-subj", "/CN=broker", "-addext", f"subjectAltName = {name}"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{made}.key"]
    subprocess.run(
        ["openssl", "req", "-x509", *key, *names, "-out", made, "-days", "2"], check=True, capture_output=True
    )
    return made


@contextlib.contextmanager
def broker(certificate: Path) -> Iterator[str]:
    """A server that requires a client certificate, as brokers do; yields its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    context.wrap_socket(connection, server_side=True).close()

        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_a_broker_that_wants_a_client_certificate_is_trusted_by_its_own(tmp_path: Path) -> None:
    made = certificate(tmp_path, "IP:127.0.0.1")
    with broker(made) as server:
        assert look(Module(server, made)) == {"accepting": [server], "refusing": [], "untrusted": []}


def test_another_authority_and_another_name_are_refused_by_the_role(tmp_path: Path) -> None:
    named, other = certificate(tmp_path, "IP:127.0.0.1"), certificate(tmp_path, "DNS:kafka1")
    connect = {"name": "kquota_agent", "tasks_from": "preflight_connections"}
    for of_broker, authority in ((named, other), (other, other)):
        with broker(of_broker) as server:
            kafka = {
                "security.protocol": "SSL",
                "ssl.ca.location": str(authority),
                "bootstrap.servers": server,
            }
            with pytest.raises(PlayFailed) as failed:
                run_play(tmp_path, [{"ansible.builtin.include_role": connect}], {"kquota_agent_kafka": kafka})
            said = " ".join(str(failed.value).split())
            assert f"localhost does not trust {server}: " in said
            assert f"must be in {authority} (ssl.ca.location in kquota_agent_kafka)" in said
