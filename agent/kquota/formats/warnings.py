"""Warnings about a decision, in the same words for the status, ``kquota explain`` and the journal."""

from __future__ import annotations

from kquota.policy.decision import Decision
from kquota.policy.ranking import volumes_of

_MOST_NAMED = 5
SIGNING_OFF = "signing: off, so no report and no order proves who wrote it"


def unvouched_sentence(broker_id: int) -> str:
    """Return whose report does not count, and why."""
    return (
        f"the report of broker {broker_id} does not count: the cluster has never listed that broker,"
        " and no signature proves who wrote it"
    )


def held_open_sentence(decision: Decision) -> str | None:
    """Return which volumes producers can fill because of a hold; None unless one is over its hard limit."""
    if not decision.overridden:
        return None
    first = decision.overridden[0]
    more = len(volumes_of(decision.overridden)) - 1
    others = f", and so {'is' if more == 1 else 'are'} {more} more" if more > 0 else ""
    where = f"volume {first.volume} of broker {first.broker_id}"
    return f"producers are held open although {where} is over its hard limit{others}: they can fill it"


def printed(warning: str) -> str:
    """Return a warning as a sentence of its own."""
    return f"{warning[0].upper()}{warning[1:]}."


def warnings_of(decision: Decision) -> list[str]:
    """Return what the decision itself does not say: a risky hold, and reports that do not count."""
    held_open = held_open_sentence(decision)
    strangers = [unvouched_sentence(broker_id) for broker_id in decision.unvouched[:_MOST_NAMED]]
    more = len(decision.unvouched) - _MOST_NAMED
    if more > 0:
        strangers.append(f"{more} more reports do not count, for the same reason")
    return [*([] if held_open is None else [held_open]), *strangers]
