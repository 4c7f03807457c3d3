"""The next step that `kquota status` names, for a broker that does not hold producers yet."""

from __future__ import annotations

from typing import Any

import pytest

from kquota.cli.local_state import next_step

OBSERVING = {"decision": {"mode": "observe"}, "lease_seconds_left": 20.0}
NO_PLUG_IN = {"applied": None, "applied_cause": "missing"}
PLUG_IN = {"applied": {"mode": "observe"}, "applied_cause": None}


@pytest.mark.parametrize(
    ("local", "named"),
    [
        ({"decision": None, "lease_seconds_left": None, **NO_PLUG_IN}, "systemctl start kquota-agent"),
        ({**OBSERVING, "lease_seconds_left": 0.0, **PLUG_IN}, "journalctl -u kquota-agent"),
        ({**OBSERVING, **NO_PLUG_IN}, "kquota-callback"),
        ({**OBSERVING, **PLUG_IN}, "mode: enforce"),
    ],
)
def test_it_is_one_sentence_with_a_command_or_a_setting(local: dict[str, Any], named: str) -> None:
    step = next_step({"problems": []}, local)
    assert step is not None
    assert named in step
    assert ". " not in step
    assert next_step({"problems": ["Kafka is away"]}, local) is None, "the problem has its own remedy"


@pytest.mark.parametrize(
    "local",
    [
        {**OBSERVING, "decision": {"mode": "enforce"}, **PLUG_IN},
        {**OBSERVING, "applied": None, "applied_cause": "stale"},
    ],
)
def test_a_broker_that_was_introduced_needs_none(local: dict[str, Any]) -> None:
    assert next_step({"problems": []}, local) is None
