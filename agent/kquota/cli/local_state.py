"""The contents of the files on this host: the decision, its lease, and the applied state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kquota.formats.decision_reading import MalformedDecision, read_decision_document
from kquota.formats.sentences import (
    broken_glass_sentence,
    decision_sentence,
    local_starving,
    observing_brokers,
)
from kquota.guard.applied_clients import ClientFigures
from kquota.guard.applied_state import AppliedState, UnknownCause, exempt_principals, read_applied_state
from kquota.guard.decision_file import read
from kquota.host.boot_clock import BootClock, BootMoment
from kquota.host.safe_read import Refusal
from kquota.policy.decision import Mode
from kquota.settings import Settings

_MAX_CLIENTS = 10
_MAX_EXEMPT = 8
_START = (
    "start the agent (systemctl start kquota-agent); if it runs already, journalctl -u kquota-agent has the"
    " reason why it does not decide"
)
_PLUG_IN = (
    "adapt the limits in agent.yml to these disks; then install the package kquota-callback and restart the"
    " broker (docs/packages.md), because the agent alone holds no producer"
)
_ENFORCE = (
    "watch for some days which producers it would hold; then set mode: enforce in agent.yml and"
    " kquota.mode=enforce at the broker, or run rollout.yml with kquota_mode=enforce"
)
_NOT_IN_FORCE = (
    "enforce is configured and not in force yet: reload the agent if agent.yml was changed; otherwise"
    " journalctl -u kquota-agent has the reason, usually that kquota.exempt.principals of the broker lacks"
    " the agent's principal"
)
# Between a look and the agent's last decision the disks go on filling.
_FACTOR_TOLERANCE = 0.1


def local_document(settings: Settings, broker_id: int) -> dict[str, Any]:
    """Return decision, lease and applied state of the broker on this host, each with its problem."""
    now = BootClock().now()
    decision, problem = read_decision(settings.decision_file)
    applied = read_applied_state(settings.applied_file, now, broker_id=broker_id)
    known = applied if isinstance(applied, AppliedState) else None
    return {
        "broker_id": broker_id,
        "decision": decision,
        "decision_problem": problem,
        "lease_seconds_left": None if decision is None else lease_seconds_left(decision, now),
        "applied": None
        if known is None
        else {
            "state": known.state.value,
            "factor": known.factor,
            "mode": known.mode.value,
            "broker_mode": known.broker_mode.value,
            "mechanism": known.mechanism.value,
            "sequence": known.sequence,
            "lost": known.lost,
            "kept": known.kept,
            "starving": known.starving,
            "scope": known.scope.value,
            "cluster_topics": known.cluster_topics,
            "age_seconds": known.age_seconds(now),
            "offline_log_dirs": list(known.offline_log_dirs),
            "exempt": exempt_principals(known),
            "plugin_version": known.plugin_version,
            "errors": dict(known.errors),
        },
        "applied_problem": None if isinstance(applied, AppliedState) else applied.reason,
        "applied_cause": None if isinstance(applied, AppliedState) else applied.cause.value,
        "clients": None if known is None or known.clients is None else _clients(known.clients),
    }


def exempt_sentence(local: Mapping[str, Any]) -> str | None:
    """Return whom the plug-in on this host exempts; None where it has seen no exempt principal."""
    names = () if local["applied"] is None else local["applied"]["exempt"]
    if not names:
        return None
    more = f" and {len(names) - _MAX_EXEMPT} more" if len(names) > _MAX_EXEMPT else ""
    return (
        f"broker {local['broker_id']} (this host): exempt principals seen in the last ten minutes:"
        f" {'; '.join(names[:_MAX_EXEMPT])}{more}"
    )


def cluster_topics(local: Mapping[str, Any]) -> int | None:
    """Return how many topics the cluster has: the plug-in knows it, and the agent's principal may see few."""
    applied = local["applied"]
    return None if applied is None else applied["cluster_topics"]


def read_decision(path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Read a decision file; return the document with its ``sentence``, or its defect."""
    document = read(path)
    if isinstance(document, Refusal):
        return None, document.reason
    problem = _lease_problem(document)
    try:
        document["sentence"] = decision_sentence(read_decision_document(document))
    except MalformedDecision as error:
        problem = str(error)
    return (None, f"the decision file {path} is refused: {problem}") if problem else (document, None)


def lease_seconds_left(decision: Mapping[str, Any], now: BootMoment) -> float:
    """Return how long a decision still holds on this host; 0 once it does not."""
    if decision["boot_id"] != now.boot_id:
        return 0.0
    return float(max(0, int(decision["valid_until_uptime_ms"]) - now.uptime_ms) / 1000)


def local_notes(local: Mapping[str, Any]) -> list[str]:
    """Describe in a few sentences the state of this host's broker."""
    broker = f"broker {local['broker_id']} (this host)"
    decision, applied = local["decision"], local["applied"]
    notes = []
    if decision is None:
        notes.append(f"{broker}: {local['decision_problem']}")
    elif local["lease_seconds_left"] <= 0:
        notes.append(f"{broker}: the decision's lease has ended: is the agent running?")
    else:
        left = local["lease_seconds_left"]
        notes.append(
            f"{broker}: decided {decision['state']} ({decision['mode']}), lease runs for {left:.0f} s more"
        )
    if applied is None:
        notes.append(f"{broker}: enforcement unverified: {local['applied_problem']}")
    else:
        held = "" if applied["lost"] is None else f"; {applied['lost']}"
        if applied["kept"] is not None:
            held = f"; the last decision holds, because {applied['kept']}"
        notes.append(
            f"{broker}: applies {applied['state']} ({applied['mode']}, by {applied['mechanism']}){held}"
        )
    if (starving := local_starving(local)) is not None:
        notes.append(starving)
    if (exempt := exempt_sentence(local)) is not None:
        notes.append(exempt)
    return notes


def disagreement(document: Mapping[str, Any], local: Mapping[str, Any]) -> str | None:
    """Return the decision of this host's agent, if it differs from the result of a look at the cluster.

    They decide by the same rules, but each by what it has read: an agent that is stuck, cut off, or has other
    settings decides something else, and its broker goes by it.
    """
    decision = local["decision"]
    if decision is None or not local["lease_seconds_left"]:
        return None
    factors_differ = abs(float(decision["factor"]) - document["factor"]) > _FACTOR_TOLERANCE
    if decision["state"] == document["state"] and not factors_differ:
        return None
    return (
        f"The agent on this host has decided otherwise: {decision['sentence']}. If that stays so:"
        " journalctl -u kquota-agent"
    )


def broken_glass(document: Mapping[str, Any], local: Mapping[str, Any]) -> str | None:
    """Return which brokers of a status document only observe although enforcing is decided, or None."""
    return broken_glass_sentence(observing_brokers(document["brokers"], local))


def next_step(document: Mapping[str, Any], local: Mapping[str, Any], configured: Mode) -> str | None:
    """Return what an operator does next with this host's broker until it enforces, or None.

    Where the look has met obstacles, these come first, and each has its own remedy. ``configured`` is the
    mode of the configuration; the decision has another where that was not reloaded, or enforcing is refused.
    """
    decision, applied = local["decision"], local["applied"]
    if document["problems"]:
        return None
    if decision is None or not local["lease_seconds_left"]:
        return _START
    if decision["mode"] != Mode.OBSERVE:
        return None
    if applied is None:
        return _PLUG_IN if local["applied_cause"] == UnknownCause.MISSING else None
    return _ENFORCE if configured is Mode.OBSERVE else _NOT_IN_FORCE


def _clients(figures: ClientFigures) -> list[dict[str, object]]:
    """Return who produces most to this broker; ``kquota top`` has the rest."""
    return [
        {
            "name": client.name,
            "produce_bytes_per_second": client.produce_bytes_per_second,
            "limit_bytes_per_second": client.produce_limit_bytes_per_second,
            "throttle_ms": client.produce_throttle_ms,
        }
        for client in sorted(figures.top, key=lambda client: -client.produce_bytes_per_second)[:_MAX_CLIENTS]
    ]


def _lease_problem(document: Mapping[str, Any]) -> str | None:
    kinds = {"mode": str, "boot_id": str, "broker_id": int, "valid_until_uptime_ms": int}
    wrong = [key for key, kind in kinds.items() if not isinstance(document.get(key), kind)]
    return f"{', '.join(wrong)} missing or of the wrong form" if wrong else None
