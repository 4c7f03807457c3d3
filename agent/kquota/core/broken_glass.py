"""A broken glass: brokers that only observe although enforcing is decided, and the sentence about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kquota.core.decision import Mode

_MOST_NAMED = 5


def broken_glass_sentence(broker_ids: Iterable[int]) -> str | None:
    """Return the brokers that hold no producer although enforcing is decided; None if there are none.

    The same words in the status, in ``kquota explain``, in ``kquota check`` and in the journal.
    """
    ids = [str(broker_id) for broker_id in broker_ids]
    if not ids:
        return None
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    who = f"Broker {ids[0]} holds" if len(ids) == 1 else f"Brokers {', '.join(ids[:_MOST_NAMED])}{more} hold"
    return (
        f"{who} no producer although enforcing is decided: mode observe is in force there"
        " (kquota.mode of the broker, or mode of its agent)."
    )


def observing_brokers(brokers: Sequence[Mapping[str, Any]], local: Mapping[str, Any]) -> list[int]:
    """Return the active brokers that observe, by id, where enforcing is decided.

    Enforcing is decided if this host's agent enforces under a running lease, or some broker enforces. No
    better source exists: a record has the mode in force at its broker, not the decision of its agent.

    Args:
        brokers: the ``brokers`` of a status document.
        local: the contents of the files on this host; they are newer than the record of this host's broker.
    """
    modes = {broker["broker_id"]: broker["mode"] for broker in brokers if broker["active"] is not False}
    if local["applied"] is not None:
        modes[local["broker_id"]] = local["applied"]["mode"]
    if not decides_to_enforce(local) and Mode.ENFORCE not in modes.values():
        return []
    return sorted(broker_id for broker_id, mode in modes.items() if mode == Mode.OBSERVE)


def decides_to_enforce(local: Mapping[str, Any]) -> bool:
    """Return whether this host's decision is to be enforced, and its lease runs."""
    decision = local["decision"]
    return decision is not None and decision["mode"] == Mode.ENFORCE and bool(local["lease_seconds_left"])


def local_broken_glass(local: Mapping[str, Any]) -> str | None:
    """Return the sentence for the broker on this host alone; None where its glass is whole or not known."""
    applied = local["applied"]
    observes = applied is not None and applied["mode"] == Mode.OBSERVE
    return broken_glass_sentence([local["broker_id"]] if observes and decides_to_enforce(local) else [])
