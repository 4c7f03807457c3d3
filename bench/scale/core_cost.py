"""The cost of reading a record and of deciding, by themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from bench.scale.figures import CoreCost
from bench.scale.reports import USUAL_FREE_RATIO, report, scoped_report
from kquota.formats.records import read_event
from kquota.kafka.documents import to_json
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import Decision, Scope, decision_document
from kquota.policy.view import ClusterView

_NOW = datetime(2026, 11, 20, 10, 15, 30, tzinfo=UTC)
_REPEATS = 7


def measure_core(brokers: int, volumes: int, *, scoped: bool = False) -> CoreCost:
    """Fold the reports of this many brokers, and decide.

    All are over the soft limit; with the scope of the volume a few, whose reports name topics.
    """
    values = [(str(i).encode(), _report(i, volumes, scoped)) for i in range(brokers)]
    fold, first, later, after = [], [], [], []
    for _ in range(_REPEATS):
        view = ClusterView(timedelta(seconds=30))
        fold.append(_seconds(partial(_fold, view, values)))
        decision = _decision(view, brokers, Scope.VOLUME if scoped else Scope.CLUSTER)
        first.append(_seconds(decision))
        later.append(min(_seconds(decision) for _ in range(5)))
        # an agent's input a fifth of a second later, with a report every five seconds
        _fold(view, values[: brokers // 25])
        after.append(_seconds(decision))
    return CoreCost(
        brokers,
        volumes,
        min(fold) / brokers,
        min(first),
        min(later),
        min(after),
        scoped,
        len(to_json(decision_document(decision()))),
    )


def _report(i: int, volumes: int, scoped: bool) -> bytes:
    at = _NOW - timedelta(milliseconds=i % 5000)
    return scoped_report(i, i, volumes, at, USUAL_FREE_RATIO) if scoped else report(i, volumes, at)


def _fold(view: ClusterView, values: list[tuple[bytes, bytes]]) -> None:
    for key, value in values:
        view.fold(read_event(key, value), _NOW)


def _decision(view: ClusterView, brokers: int, scope: Scope) -> Callable[[], Decision]:
    situation = Situation(frozenset(range(brokers)), self_id=0)
    settings = PolicySettings(scope=scope)
    return lambda: decide(view, situation, settings, _NOW)


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
