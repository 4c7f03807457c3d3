"""The next step that `kquota status` names, for a broker that does not hold producers yet."""

from __future__ import annotations

from typing import Any

import pytest

from kquota.cli.local_state import next_step
from kquota.policy.decision import Mode

OBSERVING = {"decision": {"mode": "observe"}, "lease_seconds_left": 20.0}
ENFORCING = {"decision": {"mode": "enforce"}, "lease_seconds_left": 20.0}
NO_PLUG_IN = {"applied": None, "applied_cause": "missing"}
PLUG_IN = {"applied": {"mode": "observe"}, "applied_cause": None}


@pytest.mark.parametrize(
    ("local", "configured", "named"),
    [
        (
            {"decision": None, "lease_seconds_left": None, **NO_PLUG_IN},
            Mode.OBSERVE,
            "systemctl start kquota-agent",
        ),
        ({**OBSERVING, "lease_seconds_left": 0.0, **PLUG_IN}, Mode.OBSERVE, "journalctl -u kquota-agent"),
        ({**OBSERVING, **NO_PLUG_IN}, Mode.OBSERVE, "kquota-callback"),
        ({**OBSERVING, **NO_PLUG_IN}, Mode.ENFORCE, "kquota-callback"),
        ({**OBSERVING, **PLUG_IN}, Mode.OBSERVE, "set mode: enforce"),
        ({**OBSERVING, **PLUG_IN}, Mode.ENFORCE, "enforce is configured and not in force yet"),
    ],
)
def test_it_is_one_sentence_with_a_command_or_a_setting(
    local: dict[str, Any], configured: Mode, named: str
) -> None:
    step = next_step({"problems": []}, local, configured)
    assert step is not None
    assert named in step
    assert ". " not in step
    assert next_step({"problems": ["Kafka is away"]}, local, configured) is None, (
        "the problem has its own remedy"
    )


def test_enforce_that_is_configured_is_not_asked_for_again_but_has_its_reason_named() -> None:
    step = next_step({"problems": []}, {**OBSERVING, **PLUG_IN}, Mode.ENFORCE)
    assert step is not None
    assert "mode: enforce" not in step
    for named in ("reload", "journalctl -u kquota-agent", "kquota.exempt.principals"):
        assert named in step


@pytest.mark.parametrize("configured", Mode)
@pytest.mark.parametrize(
    "local",
    [
        {**ENFORCING, **PLUG_IN},
        {**ENFORCING, **NO_PLUG_IN},  # after a reboot, until the plug-in has written it
        {**OBSERVING, "applied": None, "applied_cause": "stale"},
    ],
)
def test_a_broker_that_was_introduced_needs_none(local: dict[str, Any], configured: Mode) -> None:
    assert next_step({"problems": []}, local, configured) is None
