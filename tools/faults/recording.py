"""A plug-in of pytest: saves what a test showed when the last of its parameters has run.

``pytest -p tools.faults.recording --results FILE --minutes 10``
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tools.faults.results import Result, Results


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say what it may be given."""
    group = parser.getgroup("faults")
    group.addoption("--results", type=Path, help="the file of results")
    group.addoption("--minutes", type=float, help="begin no test after so long")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record."""
    minutes = config.getoption("--minutes")
    config.pluginmanager.register(Recorder(Results(config.getoption("--results")), minutes))


class Recorder:
    """Adds up the reports of each test."""

    def __init__(self, results: Results, minutes: float | None) -> None:
        self._results = results
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._left: Counter[str] = Counter()
        self._seen: dict[str, Result] = {}
        self._phases: list[pytest.TestReport] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the parameters of each test."""
        self._left.update(_test(item.nodeid) for item in session.items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a phase of a test."""
        self._phases.append(report)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Save the test, if these were its last parameters."""
        phases, self._phases = self._phases, []
        test, case = _test(nodeid), _result(nodeid, phases)
        self._seen[test] = self._seen[test] + case if test in self._seen else case
        self._left[test] -= 1
        if self._left[test] == 0:
            self._results.add(self._seen[test])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Stop when time is up."""
        done = yield
        if self._deadline is not None and time.monotonic() > self._deadline:
            item.session.shouldstop = "time is up"
        return done


def _test(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def _result(nodeid: str, phases: list[pytest.TestReport]) -> Result:
    values: dict[str, float] = {}
    for name, value in phases[-1].user_properties if phases else ():
        if name in {"safe_seconds", "recovery_seconds"}:
            values[name] = max(float(str(value)), values.get(name, 0.0))
    passed = [phase.when for phase in phases if phase.outcome == "passed"] == ["setup", "call", "teardown"]
    return Result(
        _test(nodeid),
        datetime.now(UTC).date().isoformat(),
        int(passed),
        () if passed else (nodeid.rpartition("::")[2],),
        sum(phase.duration for phase in phases),
        values.get("safe_seconds"),
        values.get("recovery_seconds"),
    )
