"""The broker and the agents trust kquota's authority; certificates that the owner of its key can sign."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from host_state import applied, decision, run, wait_for

AUTHORITY = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "authority"
SIGN = """
export KQUOTA_NAMES="DNS:kquota.invalid$3"
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout client.key -subj "$2" |
  openssl x509 -req -CA "$1/issuer.pem" -CAkey "$1/issuer.key" -passin file:passphrase -days 1 \
    -extfile "$1/client.cnf" -out client.pem
cat "$1/issuer.pem" >> client.pem
"""


ORDER = "kquota hold pause --for 10m --reason 'a look'"
OPERATOR = "--command-config /root/jane.properties"


def sign(folder: Path, variables: dict[str, Any], subject: str, uri: str = "") -> None:
    """Make a key and a certificate in the folder, client.key and client.pem."""
    (folder / "passphrase").write_text(variables["kquota_tls_ca_passphrase"])
    subprocess.run(
        ["sh", "-ec", SIGN, "sh", AUTHORITY, subject, uri and f",URI:{uri}"], cwd=folder, check=True
    )


def test_every_report_is_signed_and_has_to_be(host: Any):
    status = json.loads(run(host, "kquota status --json"))
    assert status["signing"] == "required"
    assert [(broker["broker_id"], broker["signed"]) for broker in status["brokers"]] == [
        (1, True),
        (2, True),
        (3, True),
    ]


def test_an_operator_gives_orders_and_the_holder_of_an_agent_s_key_does_not(host: Any, tmp_path: Path):
    if host.check_output("hostname") != "broker-1":
        return
    with host.sudo():
        refused = host.run(ORDER)
        unsigned = host.run(f"{ORDER} --command-config /etc/kafka/operator.properties")
    assert refused.rc == 78
    assert "the agent's credentials are not an operator's" in refused.stderr
    assert unsigned.rc == 1
    assert "operator" in unsigned.stderr
    sign(tmp_path, host.ansible.get_variables(), "/O=kquota/CN=jane", "kquota://*/operator/jane")
    for kind in ("pem", "key"):
        run(host, f"install -m 600 /dev/null /root/jane.{kind}")
        run(host, f"echo %s > /root/jane.{kind}", (tmp_path / f"client.{kind}").read_text())
    run(host, "install -m 600 /etc/kafka/operator.properties /root/jane.properties")
    for name, kind in (("certificate", "pem"), ("key", "key")):
        run(host, f"echo kquota.signing.{name}=/root/jane.{kind} >> /root/jane.properties")
    run(host, f"{ORDER} {OPERATOR}")
    wait_for(lambda: applied(host), lambda found: found["state"] == "PAUSE")
    assert decision(host)["hold"]["actor"] == "jane"
    run(host, f"kquota hold release {OPERATOR}")
    wait_for(lambda: applied(host), lambda found: found["state"] == "OPEN")


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [("/O=kquota/CN=kquota-agent", True), ("/CN=broker-1", False), ("/CN=admin", False)],
)
def test_a_broker_refuses_names_that_are_not_kquota_s(
    subject: str, accepted: bool, host: Any, tmp_path: Path
):
    variables = host.ansible.get_variables()
    sign(tmp_path, variables, subject)
    # With TLS 1.2 the broker's answer is part of the handshake.
    connect = ["openssl", "s_client", "-tls1_2", "-connect", f"{variables['ansible_host']}:9093"]
    present = ["-cert", "client.pem", "-cert_chain", "client.pem", "-key", "client.key"]
    done = subprocess.run(
        [*connect, *present], cwd=tmp_path, check=False, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert (done.returncode == 0) == accepted
    assert (b"alert certificate unknown" in done.stderr) != accepted
