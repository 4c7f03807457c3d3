"""Recommendations as what operators use: Ansible variables, and commands of Kafka's own tools."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml
from pyspark.sql import Row

from kquota_pipeline.backtest.policy import Limits

_HEAD = """\
# Recommended by `kquota-pipeline recommend`; nothing has been applied. For host_vars of the host of
# broker {broker_id}: the role kquota_agent takes the variable as it is, and so does agent.yml under limits.
"""


def write_limits(limits: Mapping[int, Limits], folder: Path) -> list[Path]:
    """Write a file of Ansible variables per broker, `broker-ID.yml`, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for broker_id, own in sorted(limits.items()):
        path = folder / f"broker-{broker_id}.yml"
        body = yaml.safe_dump({"kquota_agent_limits": own.to_document()}, sort_keys=False)
        path.write_text(_HEAD.format(broker_id=broker_id) + "---\n" + body, "utf-8")
        paths.append(path)
    return paths


def quota_commands(quotas: Iterable[Row]) -> list[str]:
    """Return a command of kafka-configs for each recommended quota (rows of accounting.clients.quotas).

    A client without a client id shares the quota of the empty one, which kafka-configs can't name: such
    clients get their user's. Clients without a user cannot be distinguished from others, and get none.
    """
    commands = []
    for row in sorted(quotas, key=lambda row: (row.cluster_id, row.user, row.client_id)):
        entity = []
        if row.user:
            entity += ["--entity-type", "users", "--entity-name", row.user]
        if row.client_id:
            entity += ["--entity-type", "clients", "--entity-name", row.client_id]
        if entity:
            words = ["--alter", "--add-config", f"producer_byte_rate={row.quota_bytes_per_second}", *entity]
            commands.append(
                f'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" {" ".join(map(_quoted, words))}'
            )
    return commands


def folder_name(cluster_id: str) -> str:
    """Return the name of a cluster's folder: its id, of which a record may say anything, `..` and `/` too."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else f"%{ord(c):02X}" for c in cluster_id)


def _quoted(word: str) -> str:
    """Return a word for a shell: what a terminal would obey is written as bash reads it in $'…'."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = (
        "".join(f"\\x{byte:02x}" for byte in c.encode()) if not c.isprintable() or c in "\\'" else c
        for c in word
    )
    return f"$'{''.join(escaped)}'"
