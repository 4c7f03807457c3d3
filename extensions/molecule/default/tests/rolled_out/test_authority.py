"""A broker, which trusts kquota's authority, and certificates that the owner of its key can sign."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

AUTHORITY = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "authority"
SIGN = """
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout client.key -subj "$2" |
  openssl x509 -req -CA "$1/issuer.pem" -CAkey "$1/issuer.key" -passin file:passphrase -days 1 \
    -extfile "$1/client.cnf" -out client.pem
cat "$1/issuer.pem" >> client.pem
"""


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [("/O=kquota/CN=kquota-agent", True), ("/CN=broker-1", False), ("/CN=admin", False)],
)
def test_a_broker_refuses_names_that_are_not_kquota_s(
    subject: str, accepted: bool, host: Any, tmp_path: Path
):
    variables = host.ansible.get_variables()
    (tmp_path / "passphrase").write_text(variables["kquota_tls_ca_passphrase"])
    subprocess.run(["sh", "-ec", SIGN, "sh", AUTHORITY, subject], cwd=tmp_path, check=True)
    # With TLS 1.2 the broker's answer is part of the handshake.
    connect = ["openssl", "s_client", "-tls1_2", "-connect", f"{variables['ansible_host']}:9093"]
    present = ["-cert", "client.pem", "-cert_chain", "client.pem", "-key", "client.key"]
    done = subprocess.run(
        [*connect, *present], cwd=tmp_path, check=False, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (done.returncode == 0) == accepted
    assert (b"alert certificate unknown" in done.stderr) != accepted
