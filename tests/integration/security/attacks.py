"""The attacks of docs/attacks.yml: each as the records that an attacker writes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from kquota.formats.signature_headers import MAX_COUNTER
from kquota.formats.usage_format import parse_usage
from kquota.kafka.misplaced import partition_of
from kquota.policy.timestamps import format_utc
from tests.integration.security.attackers import PARTITIONS, TYPED, Attacker
from tests.integration.spine.fleet import ORDERS_TOPIC, USAGE_TOPIC

OWN, VICTIM, DOWN, INVENTED = 1, 3, 77, 999_999
"""The broker whose agent's key was stolen; another one; a full one that is down; one that never was."""
MANY_CERTIFICATES = 3000
HUNDRED, ELSEWHERE, INTRUDER = 100, "another-cluster-here-00", "an intruder"

Write = Callable[[Attacker], None]


WRITES: dict[str, tuple[str, Write]] = {}
"""The situation in which each attack is tried, and the records that it writes."""


def _in(stage: str, *names: str) -> Callable[[Write], Write]:
    def register(write: Write) -> Write:
        WRITES.update(dict.fromkeys(names, (stage, write)))
        return write

    return register


def order(**changes: Any) -> dict[str, Any]:
    """Return an order as an operator would give it, for 29 days."""
    until = format_utc(datetime.now(UTC) + timedelta(days=29))
    return {"Until": until, "Reason": "a reason", "Actor": TYPED} | changes


def hold(action: str, **changes: Any) -> dict[str, Any]:
    return {"Action": action} | order(**changes)


def _repeat(attacker: Attacker, write: Callable[[], None], tries: int = 5) -> None:
    """Go on for a second, or longer: the broker's own agent answers each."""
    for _ in range(tries):
        write()
        attacker.flush()
        time.sleep(0.2)


@_in("healthy", "stranger-writes")
def _(attacker: Attacker) -> None:
    attacker.write(str(VICTIM), attacker.report(VICTIM, full=True, InstanceId=INTRUDER))
    attacker.write(str(VICTIM), None)
    attacker.order("hold", hold("pause"))


@_in("healthy", "invented-broker")
def _(attacker: Attacker) -> None:
    attacker.write(str(INVENTED), attacker.report(VICTIM, full=True, SnapshotAt="2020-01-01T00:00:00Z"))


@_in("healthy", "invented-brokers")
def _(attacker: Attacker) -> None:
    full = attacker.report(VICTIM, full=True)
    for number in range(1, HUNDRED + 1):
        attacker.write(str(INVENTED + number), full)
        attacker.write(f"quarantine/{INVENTED + number}", order())


@_in("healthy", "vouched-invention")
def _(attacker: Attacker) -> None:
    def write() -> None:
        own = attacker.report(OWN, full=False, Listed=[INVENTED])
        attacker.write(str(OWN), own, counter=attacker.above(OWN))
        attacker.write(str(INVENTED), attacker.report(VICTIM, full=True))

    _repeat(attacker, write)


@_in("healthy", "other-full", "granted-reports", "broker-reports")
def _(attacker: Attacker) -> None:
    full = attacker.report(VICTIM, full=True, InstanceId=INTRUDER)
    attacker.write(str(VICTIM), full)
    genuine = attacker.genuine(VICTIM)[-1]
    attacker.append(str(VICTIM), json.dumps(full).encode(), genuine.headers() or [])


@_in("healthy", "many-certificates")
def _(attacker: Attacker) -> None:
    full = json.dumps(attacker.report(VICTIM, full=True, InstanceId=INTRUDER)).encode()
    for signed in attacker.armoury.forgeries(f"agent/{VICTIM}", MANY_CERTIFICATES):
        attacker.append(str(VICTIM), full, signed)


@_in("healthy", "tombstone")
def _(attacker: Attacker) -> None:
    _repeat(attacker, lambda: attacker.write(str(VICTIM), None))


@_in("healthy", "garbage")
def _(attacker: Attacker) -> None:
    for key in (str(VICTIM), str(INVENTED), f"quarantine/{VICTIM}", "hold"):
        for value in (b"", b"\xff\xfe", b"[" * 900_000, b"{}", b"null"):
            attacker.write(key, value)
            attacker.flush()


@_in("healthy", "future")
def _(attacker: Attacker) -> None:
    coming = format_utc(datetime.now(UTC) + timedelta(days=300))
    for key in (VICTIM, INVENTED):
        attacker.write(str(key), attacker.report(VICTIM, full=True, SnapshotAt=coming))


@_in("healthy", "hold-pause", "granted-orders", "broker-orders")
def _(attacker: Attacker) -> None:
    attacker.order("hold", hold("pause"))


@_in("healthy", "wrong-partition")
def _(attacker: Attacker) -> None:
    for broker_id in (OWN, VICTIM):
        wrong = 1 - partition_of(str(broker_id).encode(), PARTITIONS[USAGE_TOPIC])
        healthy, counter = attacker.report(broker_id, full=False), attacker.above(broker_id)
        attacker.write(str(broker_id), healthy, partition=wrong, counter=counter)


@_in("healthy", "own-full", "revoked-full")
def _(attacker: Attacker) -> None:
    def write() -> None:
        full = attacker.report(OWN, full=True, InstanceId=INTRUDER)
        attacker.write(str(OWN), full, counter=attacker.above(OWN))

    # On a busy machine the others may read each one together with its answer, and one is enough.
    _repeat(attacker, write, tries=10)


@_in("full", "replay")
def _(attacker: Attacker) -> None:
    # A metadata volume may be full all the time: it has no vote.
    older = {
        broker_id: [one for one in attacker.genuine(broker_id) if not parse_usage(one.value() or b"").votes]
        for broker_id in (OWN, VICTIM)
    }

    def write() -> None:
        for broker_id, reports in older.items():
            attacker.append(str(broker_id), reports[-1].value(), reports[-1].headers() or [])

    _repeat(attacker, write)


@_in("full", "full-healthy", "expired-report")
def _(attacker: Attacker) -> None:
    _repeat(attacker, lambda: attacker.write(str(VICTIM), attacker.report(VICTIM, full=False)))
    attacker.write(str(VICTIM), attacker.report(VICTIM, full=False, InstanceId=INTRUDER))


@_in("full", "foreign-authority")
def _(attacker: Attacker) -> None:
    _repeat(attacker, lambda: attacker.write(str(VICTIM), attacker.report(VICTIM, full=False)))
    attacker.order("hold", hold("open"))


@_in("full", "operator-reports")
def _(attacker: Attacker) -> None:
    attacker.write(str(VICTIM), attacker.report(VICTIM, full=False))
    attacker.write(str(VICTIM), None)


@_in("full", "hold-open")
def _(attacker: Attacker) -> None:
    attacker.order("hold", hold("open", Until="9999-01-01T00:00:00Z"))
    attacker.order("hold", hold("open"))


@_in("full", "quarantine")
def _(attacker: Attacker) -> None:
    attacker.order(f"quarantine/{VICTIM}", {"Until": order()["Until"]})
    attacker.order(f"quarantine/{VICTIM}", order())


@_in("full", "other-cluster")
def _(attacker: Attacker) -> None:
    value = json.dumps(attacker.report(VICTIM, full=False, ClusterId=ELSEWHERE)).encode()
    owner = attacker.armoury.forger(f"agent/{VICTIM}")
    attacker.append(str(VICTIM), value, owner.headers(str(VICTIM).encode(), value, ELSEWHERE))


@_in("down", "full-down")
def _(attacker: Attacker) -> None:
    attacker.write(str(DOWN), None)
    attacker.write(str(DOWN), attacker.report(VICTIM, full=False))


@_in("planned", "maintenance")
def _(attacker: Attacker) -> None:
    for broker_id in (OWN, 2, VICTIM):
        attacker.order(f"maintenance/{broker_id}", order())


@_in("silent", "joined")
def _(attacker: Attacker) -> None:
    joined = {str(broker_id): format_utc(datetime.now(UTC)) for broker_id in (2, VICTIM)}
    own = attacker.report(OWN, full=False, Joined=joined)
    attacker.write(str(OWN), own, counter=attacker.above(OWN))


@_in("compacted", "compacted")
def _(attacker: Attacker) -> None:
    attacker.write(str(DOWN), b"garbage")


@_in("released", "hold-again")
def _(attacker: Attacker) -> None:
    given = attacker.orders("hold")[-2]
    attacker.append("hold", given.value(), given.headers() or [], ORDERS_TOPIC)


@_in("silenced", "far-counter")
def _(attacker: Attacker) -> None:
    attacker.write(str(OWN), attacker.report(OWN, full=False), counter=MAX_COUNTER)


@_in("ordered", "operator-holds", "issuer-orders")
def _(attacker: Attacker) -> None:
    attacker.write("hold", hold("pause"), ORDERS_TOPIC)


@_in("ordered", "operator-bounds")
def _(attacker: Attacker) -> None:
    attacker.write("hold", hold("pause", Until="9999-01-01T00:00:00Z"), ORDERS_TOPIC)
    attacker.write("hold", hold("pause", Reason=" "), ORDERS_TOPIC)
