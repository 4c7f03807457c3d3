"""Settings of an agent that is on its own in a directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kquota.settings.model import Settings

FULL = {"hard": {"type": "ConsumedSpace", "level": 1}, "soft": {"type": "ConsumedSpace", "level": 0}}


def settings_in(directory: Path, **changes: Any) -> Settings:
    return Settings(
        **{
            "broker": {"server_properties": str(directory / "server.properties")},
            "kafka": {"bootstrap.servers": "127.0.0.1:1"},
            "limits": FULL,
            "mode": "enforce",
            "decision_file": str(directory / "run" / "decision.json"),
            "applied_file": str(directory / "broker" / "applied.json"),
            "state_dir": str(directory / "state"),
            "metrics": {"listen": "127.0.0.1:0"},
            **changes,
        }
    )
