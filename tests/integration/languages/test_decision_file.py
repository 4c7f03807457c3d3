"""The broker's plug-in reads the agent's file correctly, for every decision."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kquota.formats.decision_reading import read_decision_document
from kquota.formats.records import MAX_BROKER_ID
from kquota.guard.decision_file import DecisionFile, read
from kquota.policy.decision import (
    Cause,
    Decision,
    Lease,
    Mode,
    Reason,
    Undetermined,
    UndeterminedCause,
    decision_document,
)
from kquota.policy.events import Hold, HoldAction, OrderTerms
from testbed.loopback.runtime import KafkaRuntime

_NOW = datetime(2026, 11, 20, 10, 15, 30, 123000, tzinfo=UTC)

texts = st.text(max_size=40).filter(str.isprintable)
broker_ids = st.integers(0, MAX_BROKER_ID)
sequences = st.integers(0, 2**63 - 1)
headrooms = st.one_of(
    st.sampled_from([Fraction(0), Fraction(1), Fraction(1, 10**9), 1 - Fraction(1, 10**9)]),
    st.fractions(0, 1),
)
reasons = st.lists(
    st.builds(Reason, st.sampled_from(Cause), headrooms, broker_ids, texts), min_size=1, max_size=20
)
undetermined = st.lists(
    st.builds(Undetermined, st.none() | broker_ids, st.sampled_from(UndeterminedCause)), max_size=20
)
holds = st.none() | st.builds(
    Hold,
    st.sampled_from(HoldAction),
    st.builds(
        lambda seconds, why, who: OrderTerms(_NOW + timedelta(seconds=seconds), why, who),
        st.integers(1, 10**6),
        texts,
        texts,
    ),
)
decisions = st.builds(
    lambda headroom, why, unknown, hold, fallback: Decision(
        headroom, tuple(why), tuple(unknown), fallback and bool(unknown), hold, _NOW
    ),
    headrooms,
    reasons,
    undetermined,
    holds,
    st.booleans(),
)
documents = st.builds(
    lambda decision, broker_id, sequence, mode, uptime_ms, cluster_id: decision_document(
        decision,
        cluster_id=cluster_id,
        broker_id=broker_id,
        sequence=sequence,
        mode=mode,
        lease=Lease(_NOW + timedelta(seconds=30), "96689c56-715f-4f7b-8f80-51ee6c02d6ec", uptime_ms),
    ),
    decisions,
    broker_ids,
    sequences,
    st.sampled_from(Mode),
    sequences,
    texts.filter(bool),
)


class Broker:
    """The plug-in's own reader in a JVM, asked line by line."""

    def __init__(self, runtime: KafkaRuntime, jar: Path) -> None:
        source = Path(__file__).with_name("ReadDecisions.java")
        self._process = subprocess.Popen(
            [runtime.java, "-XX:+UseSerialGC", "-cp", runtime.class_path(jar), str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def read(self, path: Path) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline(), parse_float=Decimal)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def broker(kafka_runtime: KafkaRuntime, callback_jar: Path) -> Iterator[Broker]:
    reader = Broker(kafka_runtime, callback_jar)
    yield reader
    reader.close()


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(document=documents)
def test_both_languages_read_what_was_written(
    document: dict[str, Any], broker: Broker, tmp_path: Path
) -> None:
    path = tmp_path / "decision.json"
    DecisionFile(path).write(document)

    by_agent = read(path)
    assert isinstance(by_agent, dict)
    assert json.loads(json.dumps(by_agent, default=float)) == json.loads(json.dumps(document))
    again = read_decision_document(by_agent)
    assert (again.state.value, again.factor) == (document["state"], document["factor"])

    by_broker = broker.read(path)
    assert by_broker == {key: by_agent[key] for key in by_broker}
    assert len(by_broker) == 10


def test_both_languages_refuse_half_a_file(broker: Broker, tmp_path: Path) -> None:
    path = tmp_path / "decision.json"
    path.write_text('{"schema_version": 1, "cluster_id": "a", "broker_')
    path.chmod(0o644)
    assert "refused" in broker.read(path)
    assert not isinstance(read(path), dict)
