#!/usr/bin/python
"""Connect to brokers as an agent on this host would, and verify their certificates.

In one file, and with Python and openssl alone, as kquota_node.
"""

from __future__ import annotations

import os
import socket
from typing import Any

DOCUMENTATION = r"""
---
module: kquota_brokers
short_description: Connect to brokers and verify their certificates
version_added: "0.1.0"
description:
  - Connects to each broker from this host, and verifies the certificates of those that accept the connection.
  - Changes nothing. It presents no certificate of the agent.
author:
  - The kquota authors (@kquota)
options:
  servers:
    description: The brokers, each as host:port.
    type: list
    elements: str
    required: true
  authority:
    description: The authority of the brokers' certificates. Without the file, the module verifies none.
    type: path
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
"""

EXAMPLES = r"""
- name: Connect to every broker
  kquota.kquota.kquota_brokers:
    servers: ["kafka1.example.org:9093", "[2001:db8::2]:9093"]
    authority: /etc/kquota/tls/ca.pem
  register: brokers
"""

RETURN = r"""
accepting:
  description: The brokers that accept the connection.
  type: list
  elements: str
  returned: always
refusing:
  description: The other brokers, each with the reason.
  type: list
  elements: str
  returned: always
untrusted:
  description: Those that accept it and whose certificate is not valid, each with what openssl prints.
  type: list
  elements: str
  returned: always
"""

SECONDS = 10


def reason_against(server: str) -> str:
    """Return why a broker does not accept a connection; empty if it does."""
    host, _, port = server.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS).close()
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def handshake(server: str, authority: str) -> list[str]:
    """Return the command that verifies a broker's certificate.

    With openssl, which operators can run by hand. With TLS 1.3, a broker that requires a client certificate
    closes the connection after its own certificate was verified.
    """
    name = server.rpartition(":")[0].strip("[]")
    # A certificate lists addresses apart from names.
    by = "-verify_ip" if ":" in name or not name.strip("0123456789.") else "-verify_hostname"
    command = ["openssl", "s_client", "-connect", server, "-CAfile", authority, "-verify_return_error"]
    return [*command, by, name, "-brief"]


def look(module: Any) -> dict[str, Any]:
    """Return the results of the module; `module` is Ansible's."""
    servers, authority = module.params["servers"], module.params["authority"]
    reasons = {server: reason_against(server) for server in servers}
    accepting = [server for server in servers if not reasons[server]]
    untrusted = []
    for server in accepting if authority and os.path.isfile(authority) else []:  # noqa: PTH113
        # openssl ends at that line.
        _, out, said = module.run_command(handshake(server, authority), data="Q", expand_user_and_vars=False)
        if "Verification: OK" not in out + said:
            untrusted.append(f"{server}: {' '.join((out + said).split())}")
    return {
        "accepting": accepting,
        # Not unreachable, which Ansible takes for the host.
        "refusing": [f"{server} ({reasons[server]})" for server in servers if reasons[server]],
        "untrusted": untrusted,
    }


def main() -> None:
    """Look, and return what was found."""
    # Not above: the tests of what this file decides run without Ansible.
    from ansible.module_utils.basic import AnsibleModule  # noqa: PLC0415

    module = AnsibleModule(
        argument_spec={
            "servers": {"type": "list", "elements": "str", "required": True},
            "authority": {"type": "path"},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, **look(module))


if __name__ == "__main__":
    main()
