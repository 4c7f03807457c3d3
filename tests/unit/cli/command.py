"""Run a command of `kquota` here, and keep its output."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from kquota.cli.main import main
from kquota.host.boot_clock import BootClock


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)


def kquota(*arguments: str, stdin: str = "", columns: int = 100, **environment: str) -> Said:
    """Run `kquota` with these arguments, in this process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KQUOTA_")}
    clean |= {"COLUMNS": str(columns)} | environment
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, clean, clear=True),
        patch.multiple(sys, argv=["kquota", *arguments], stdin=io.StringIO(stdin), stdout=out, stderr=err),
        patch.object(sys, "excepthook", sys.excepthook),  # typer sets its own
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return Said(code, out.getvalue(), err.getvalue())


class Host:
    """A directory with a broker's server.properties, its agent.yml, and the files between the two."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log_dir = directory / "kafka"
        self.log_dir.mkdir()
        for name in ("kquota", "kquota-broker", "state"):
            (directory / name).mkdir(mode=0o755)
        self.server_properties = directory / "server.properties"
        self.server_properties.write_text(f"node.id=1\nlog.dirs={self.log_dir}\n", "utf-8")
        self.config = directory / "agent.yml"
        self.decision_file = directory / "kquota" / "decision.json"
        self.applied_file = directory / "kquota-broker" / "applied.json"
        self.configure()

    def configure(self, **changes: Any) -> None:
        """Write agent.yml."""
        settings = {
            "broker": {"server_properties": str(self.server_properties)},
            "kafka": {"bootstrap.servers": "127.0.0.1:1"},
            "decision_file": str(self.decision_file),
            "applied_file": str(self.applied_file),
            "state_dir": str(self.directory / "state"),
        }
        self.config.write_text(yaml.safe_dump(settings | changes), "utf-8")

    def run(self, *arguments: str, **options: Any) -> Said:
        """Run a command with this host's configuration."""
        return kquota(*arguments, "--config", str(self.config), **options)

    def decide(self, lease_seconds: float = 20, **changes: Any) -> dict[str, Any]:
        """Write a decision, as the agent does."""
        now = BootClock().now()
        document = {
            "schema_version": 1,
            "cluster_id": "a-cluster",
            "broker_id": 1,
            "sequence": 42,
            "mode": "enforce",
            "state": "OPEN",
            "factor": 1.0,
            "fallback": False,
            "hold": None,
            "reasons": [],
            "undetermined": [],
            "decided_at": "2026-11-20T10:00:00.000Z",
            "valid_until": "2026-11-20T10:00:30.000Z",
            "boot_id": now.boot_id,
            "valid_until_uptime_ms": now.later(lease_seconds).uptime_ms,
            **changes,
        }
        self.decision_file.write_text(json.dumps(document), "utf-8")
        return document

    def apply(self, sample: Mapping[str, Any], **changes: Any) -> None:
        """Write an applied state, as the plug-in does: a golden sample, as of now."""
        now = BootClock().now()
        as_of_now = {
            "boot_id": now.boot_id,
            "written_uptime_ms": now.uptime_ms,
            "broker_id": 1,
            "cluster_id": "a-cluster",
        }
        self.applied_file.write_text(json.dumps({**sample, **as_of_now, **changes}), "utf-8")


def throttle() -> dict[str, Any]:
    """The content of a decision at half the rate."""
    reason = {"broker_id": 3, "volume": "/dev/sdb1", "cause": "soft", "headroom": 0.5}
    return {"state": "THROTTLE", "factor": 0.5, "reasons": [reason]}


def pause() -> dict[str, Any]:
    """The content of a decision over a hard limit."""
    reason = {"broker_id": 3, "volume": "/dev/sdb1", "cause": "hard", "headroom": 0}
    return {"state": "PAUSE", "factor": 0, "reasons": [reason]}
