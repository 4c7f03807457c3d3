"""Runs of the tests of faults, with pytest: what is kept of each, also when a run is interrupted."""

from __future__ import annotations

import math
import time
from pathlib import Path

from tools.acceptance.marks import Mark
from tools.faults import Outcome, outcome, read_reports, reports_of, run

SAMPLE = """
import time

import pytest

@pytest.mark.parametrize("safe_seconds", [0.5, 0.75])
def test_killed(safe_seconds, record_property):
    record_property("safe_seconds", safe_seconds)
    record_property("disk", "sda")
    time.sleep(0.01)

@pytest.fixture
def recovered(request):
    yield
    request.node.user_properties += [("recovery_seconds", 3), ("recovery_seconds", 2)]

def test_recovers(recovered):
    pass

@pytest.mark.parametrize("well", [True, False])
class TestOfAClass:
    def test_cut(self, well):
        assert well

@pytest.fixture
def broken():
    yield
    raise RuntimeError

def test_leaves_a_mess(broken):
    pass

@pytest.mark.parametrize("late", [False, True])
def test_interrupted(late):
    if late:
        raise KeyboardInterrupt
"""


def mark(test: str) -> Mark:
    return Mark("tests/test_sample.py", test, "F1", SAMPLE.find(f"def {test.rpartition('::')[2]}("))


def seen(folder: Path, *tests: str, minutes: float = math.inf) -> dict[str, Outcome]:
    """Run tests of the sample, and return what is known of each."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/test_sample.py").write_text(SAMPLE, "utf-8")
    run(list(map(mark, tests)), minutes, folder)
    known = read_reports(reports_of(folder), 0)
    return {test: outcome([mark(test)], known) for test in tests}


def test_what_each_test_showed_is_kept_but_of_one_that_was_interrupted(tmp_path: Path) -> None:
    tests = "test_killed", "test_recovers", "TestOfAClass::test_cut", "test_leaves_a_mess", "test_interrupted"
    killed, recovers, cut, mess, interrupted = seen(tmp_path, *tests).values()
    assert killed.survived
    assert killed.seconds > 0
    assert (killed.figures.tests, killed.figures.safe_seconds) == (2, 0.8)
    assert (recovers.figures.tests, recovers.figures.recovery_seconds) == (1, 3.0)
    assert (cut.survived, cut.seen, cut.figures.tests) == (False, "FAILED: test_cut[False]", 1)
    assert mess.seen == "FAILED: test_leaves_a_mess"
    assert interrupted.seen == "0 tests as expected, 1 not yet run", "one of two parameters passed"


def test_no_test_begins_when_time_is_up_and_a_later_report_counts(tmp_path: Path) -> None:
    assert not seen(tmp_path, "test_recovers", "test_killed", minutes=1e-6)["test_killed"].survived
    reports = reports_of(tmp_path)
    (reports / "later.xml").write_text('<a><testcase classname="tests.test_sample" name="test_killed"/></a>')
    assert outcome([mark("test_killed")], read_reports(reports, 0)).survived
    assert read_reports(reports, time.time() + 1) == {}, "what is resumed is not"
