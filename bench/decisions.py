"""Decisions without an agent: what `systems` and `request_path` tell the plug-in to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

from kquota.core.decision import Cause, Decision, Lease, Mode, Reason, decision_document
from kquota.host.boot_clock import BootClock
from kquota.write.decision_file import DecisionFile

BROKER_ID = 1
# One run of the bench is the lease: there is no agent that would renew it.
_LEASE_SECONDS = 3600
_CLOCK = BootClock()


def write_decision(file: DecisionFile, factor: Fraction, *, cluster_id: str, sequence: int) -> None:
    """Order a throttle factor in [0, 1] for an hour; the plug-in reads it within a tenth of a second."""
    now, moment = datetime.now(UTC), _CLOCK.now().later(_LEASE_SECONDS)
    cause = Cause.HARD if factor == 0 else Cause.SOFT
    reasons = () if factor == 1 else (Reason(cause, factor, BROKER_ID),)
    document = decision_document(
        Decision(factor, reasons, (), fallback=False, hold=None, decided_at=now),
        cluster_id=cluster_id,
        broker_id=BROKER_ID,
        sequence=sequence,
        mode=Mode.ENFORCE,
        lease=Lease(now + timedelta(seconds=_LEASE_SECONDS), moment.boot_id, moment.uptime_ms),
    )
    file.write(document)
