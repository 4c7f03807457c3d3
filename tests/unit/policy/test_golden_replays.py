"""The golden situations: records in, the decision that the core, the CLI and the back-test must all make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kquota.formats.replays import InvalidReplay, read_events
from kquota.formats.strict_json import MAX_VALUE_BYTES
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, decision_document
from kquota.policy.events import MalformedEvent
from kquota.policy.timestamps import parse_utc
from kquota.policy.view import ClusterView
from tests.unit.policy.golden import complaints, replays


def decided_offline(records: list[object], arguments: Mapping[str, Any]) -> dict[str, object]:
    now = parse_utc(arguments["now"])
    view = ClusterView(timedelta(seconds=arguments["future_tolerance_seconds"]))
    view.fold_all(read_events(map(json.dumps, records)), now)
    joining = frozenset(arguments["joining"])
    situation = Situation(frozenset(arguments["brokers"]) | joining, joining, arguments["self"])
    settings = PolicySettings(
        FallbackAction(arguments["fallback"]), timedelta(seconds=arguments["staleness_seconds"])
    )
    return decision_document(decide(view, situation, settings, now), broker_id=arguments["self"])


@pytest.mark.accepts("A10", "A16")
@pytest.mark.parametrize("name", replays())
def test_the_core_decides_as_expected(name: str) -> None:
    expected = replays()[name]
    decision = decided_offline(expected["records"], expected["arguments"])
    assert decision == expected["decision"]
    assert complaints("decision", decision, "offline") == []


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "null",
        "7",
        '{"key": "1"}',
        '{"value": {}}',
        '{"key": 1, "value": {}}',
        '{"key": null, "value": {}}',
        '{"key": "1", "value": NaN}',
        '{"key": "1", "key": "2", "value": {}}',
        "[" * 100_000,
    ],
    ids=lambda line: line[:30],
)
def test_a_line_that_is_no_record_is_named(line: str) -> None:
    with pytest.raises(InvalidReplay, match=r"^line 3: "):
        list(read_events(['{"key": "x", "value": null}', "  ", line]))


def test_a_line_may_be_longer_than_a_record_but_not_without_bound() -> None:
    value = "7" * (2 * MAX_VALUE_BYTES)
    (event,) = read_events([json.dumps({"key": "1", "value": value})])
    assert isinstance(event, MalformedEvent)
    with pytest.raises(InvalidReplay, match=r"line 1: not JSON: \d+ bytes are more than the 8388608 allowed"):
        list(read_events([json.dumps({"key": "1", "value": 5 * value})]))


def test_a_number_that_json_does_not_have_is_named() -> None:
    with pytest.raises(InvalidReplay, match=r"^line 1: not JSON: -Infinity is not JSON$"):
        list(read_events(['{"key": "1", "value": -Infinity}']))
