"""The modules that ``kquota status`` leaves out: most of its start is imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_LOOK = """
import os, sys
from pathlib import Path
from kquota.cli.main import COMMANDS
from kquota.settings import load
COMMANDS.application("status")
load(Path(sys.argv[1]), os.environ)
print(*sorted(sys.modules))
"""


def _loaded(configuration: Path, **variables: str) -> set[str]:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("KQUOTA_")}
    command = [sys.executable, "-c", _LOOK, str(configuration)]
    return set(subprocess.check_output(command, env=environ | variables, text=True).split())


def test_status_loads_neither_the_agent_s_clients_nor_what_only_variables_and_the_watch_need(
    tmp_path: Path,
) -> None:
    configuration = tmp_path / "agent.yml"
    configuration.write_text(
        "broker: {server_properties: /etc/kafka/server.properties}\nkafka: {bootstrap.servers: '[::1]:9'}\n"
    )
    loaded = _loaded(configuration)
    assert loaded.isdisjoint(
        {
            "kquota.guard.cycle",
            "kquota.guard.kafka_side",
            "kquota.guard.report",
            "kquota.kafka.producer",
            "kquota.cli.watch",
            "pydantic_settings",
            "dotenv",
            "rich.live",
            "cryptography",
        }
    )
    assert "pydantic_settings" in _loaded(configuration, KQUOTA_MODE="observe"), "where a variable is read"
