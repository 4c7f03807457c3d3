"""The tests of what records mean run twice: with unsigned records, and with those of proven writers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.policy.signers import signed_events
from tests.unit.policy.situations import events

OF_RECORDS = ("bounded_silence", "edges", "orders", "policy", "topic_scope", "undetermined", "view")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have each test of those modules run with both kinds of records."""
    if metafunc.module.__name__.rpartition("test_")[2] in OF_RECORDS:
        metafunc.parametrize("_writers", ["unsigned", "signed"], indirect=True)


@pytest.fixture(autouse=True)
def _writers(request: pytest.FixtureRequest) -> Iterator[None]:
    before = events.set(signed_events) if getattr(request, "param", "") == "signed" else None
    yield
    if before is not None:
        events.reset(before)
