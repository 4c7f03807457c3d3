"""``kquota explain --client``: what this host's broker does to a client."""

from __future__ import annotations

from typing import Any

import pytest

from kquota.cli.explain import client_sentence
from kquota.guard.applied_state import AppliedUnknown, UnknownCause, parse_applied_state
from tests.unit.policy.golden import sample

SAMPLE: dict[str, Any] = sample("applied", "scope-topics")
ONE = {**SAMPLE["clients"]["top"][0], "user": "ada", "client_id": "app-7"}
FREE = {key: value for key, value in ONE.items() if key != "factor"}
PAUSED = {"state": "PAUSE", "factor": 0.0, "mode": "enforce", "broker_mode": "enforce", "mechanism": "fence"}
WHO = "Client ada / app-7 at broker 1"


def sentence(name: str, *clients: dict[str, Any], **changes: Any) -> str:
    listed = {**SAMPLE["clients"], "top": list(clients)}
    return client_sentence(name, parse_applied_state({**SAMPLE, **changes, "clients": listed}), 1)


@pytest.mark.parametrize(
    ("client", "changes", "expected"),
    [
        (ONE | {"factor": 0.0}, {}, f"{WHO}: requests to a paused topic are refused, all others flow."),
        (
            ONE | {"factor": 0.125},
            {},
            f"{WHO}: slowed to 0.12, the worst factor of its topics at stake; others flow.",
        ),
        (FREE, {}, f"{WHO}: not held, it has written to no topic at stake in the last ten seconds."),
        (FREE, {"scope": "cluster"}, f"{WHO}: held as every producer, PAUSE."),
        (FREE, {"mode": "observe", "mechanism": "none"}, f"{WHO}: not held."),
        (FREE, {"state": "OPEN", "factor": 1.0, "mechanism": "none"}, f"{WHO}: not held."),
    ],
)
def test_it_says_whether_and_by_what_a_client_is_held(
    client: dict[str, Any], changes: dict[str, Any], expected: str
) -> None:
    said = {sentence(name, client, **PAUSED | changes) for name in ("app-7", "ada", "ada / app-7")}
    assert said == {expected}


def test_of_several_by_that_name_the_one_that_is_held_most_counts() -> None:
    held = sentence("ada", FREE, ONE | {"factor": 0.0, "client_id": "app-8"}, ONE | {"factor": 0.5})
    assert held.startswith("Client ada / app-8 at broker 1: requests to a paused topic")


def test_a_client_that_is_not_listed_and_a_report_that_is_not_there_are_said() -> None:
    assert sentence("eve", ONE) == "Client eve: not among those that the plug-in of broker 1 lists."
    without = {key: value for key, value in SAMPLE.items() if key != "clients"}
    nothing = client_sentence("ada", parse_applied_state(without), 1)
    assert nothing == "Client ada: not known at broker 1, because its plug-in reports no clients."
    unknown = AppliedUnknown(UnknownCause.MISSING, "there is no file")
    assert client_sentence("ada", unknown, 1).endswith("at broker 1, because there is no file.")
