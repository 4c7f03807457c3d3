"""Run a command of `kquota` as its own process does, and keep what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kquota.host.boot_clock import BootClock

KQUOTA = [sys.executable, "-m", "kquota"]


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


def kquota(*arguments: str, stdin: str | None = None, columns: int = 100, **environment: str) -> Said:
    """Run `kquota` with these arguments."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KQUOTA_")}
    done = subprocess.run(
        [*KQUOTA, *arguments],
        input=stdin,
        env=clean | {"COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    return Said(done.returncode, done.stdout, done.stderr)


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
    """What a decision says at half the rate."""
    reason = {"broker_id": 3, "volume": "/dev/sdb1", "cause": "soft", "headroom": 0.5}
    return {"state": "THROTTLE", "factor": 0.5, "reasons": [reason]}


def pause() -> dict[str, Any]:
    """What a decision says over a hard limit."""
    reason = {"broker_id": 3, "volume": "/dev/sdb1", "cause": "hard", "headroom": 0}
    return {"state": "PAUSE", "factor": 0, "reasons": [reason]}
