"""The harness that runs the tests of a fault, on a sample of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.repository.test_failure_modes import fault
from tests.unit.repository.tree import REPOSITORY
from tools.faults.results import Result, Results
from tools.faults.run import run, run_pytest

SAMPLE = """
import pytest

@pytest.mark.parametrize("safe_seconds", [0.5, 0.75])
def test_killed(safe_seconds, record_property):
    record_property("safe_seconds", safe_seconds)

@pytest.fixture
def recovered(request):
    yield
    request.node.user_properties += [("recovery_seconds", 3), ("recovery_seconds", 2)]

def test_recovers(recovered):
    pass

@pytest.mark.parametrize("well", [True, False])
def test_cut(well):
    assert well

@pytest.fixture
def broken():
    yield
    raise RuntimeError

def test_leaves_a_mess(broken):
    pass

def test_interrupted():
    raise KeyboardInterrupt
"""


def run_sample(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *tests: str, minutes: float | None = None
) -> tuple[str, Results]:
    (folder / "test_sample.py").write_text(SAMPLE, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    results = Results(folder / "build/results.jsonl")
    nodes = [f"test_sample.py::{test}" for test in tests]
    ended = run_pytest(nodes, results, quick=False, minutes=minutes, look=lambda: None, folder=folder)
    return ended, results


def test_each_test_is_saved_when_the_last_of_its_parameters_has_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = "test_killed", "test_recovers", "test_cut", "test_leaves_a_mess", "test_interrupted"
    ended, results = run_sample(tmp_path, monkeypatch, *tests)
    known = results.read()
    assert ended == "stopped"
    assert [test.partition("::")[2] for test in known] == list(tests[:-1]), "all but the interrupted one"
    killed, recovers, cut, mess = known.values()
    assert (killed.passed, killed.failed, killed.safe_seconds) == (2, (), 0.75)
    assert killed.seconds > 0
    assert (recovers.passed, recovers.recovery_seconds) == (1, 3.0)
    assert (cut.passed, cut.failed) == (1, ("test_cut[False]",))
    assert (mess.passed, mess.failed) == (0, ("test_leaves_a_mess",))


def test_no_test_begins_when_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, results = run_sample(tmp_path, monkeypatch, "test_recovers", "test_killed", minutes=0)
    assert ended == "stopped"
    assert list(results.read()) == ["test_sample.py::test_recovers"]


def test_a_run_goes_on_with_what_has_not_passed(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    good = Result("tests/t.py::test_killed", "2026-11-20", 1)
    results.add(good)
    results.add(Result("tests/t.py::test_cut", "2026-11-20", 0, ("test_cut",)))
    faults = fault("F2", "test_killed"), fault("F1", "test_cut")
    run(faults, results, resume=True)
    assert results.read() == {good.test: good}, "the failed one is run again; it is not there"
    run(faults[:1], results, resume=True)
    assert results.read() == {good.test: good}
    run(faults[:1], results)
    assert results.read() == {}
