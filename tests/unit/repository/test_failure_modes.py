"""The page of failure modes, and the harness that runs the tests of a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.acceptance.marks import Mark
from tools.faults.__main__ import main
from tools.faults.catalogue import Fault, InvalidCatalogue, read_faults
from tools.faults.figures import keep_seen, read_seen
from tools.faults.page import render
from tools.faults.run import Outcome, take_java_reports, take_report

REPORT = """<testsuites><testsuite>
<testcase classname="x" name="test_killed[a]" file="tests/t.py" time="1.5">
  <properties><property name="safe_seconds" value="0.5"/></properties></testcase>
<testcase classname="x" name="test_killed[b]" file="tests/t.py" time="2.5">
  <properties><property name="safe_seconds" value="0.75"/>
  <property name="recovery_seconds" value="3"/></properties>
</testcase>
<testcase classname="x" name="test_cut" file="tests/t.py" time="1"><failure message="no"/></testcase>
<testcase classname="x" name="test_killed" file="tests/other.py" time="9"/>
</testsuite></testsuites>"""


def fault(id_: str, *tests: str) -> Fault:
    marks = tuple(Mark("tests/t.py", test, id_, 1) for test in tests)
    return Fault(id_, "expected", "problem", "seen", "does", "act", marks)


def test_every_fault_has_a_row_and_the_page_is_fresh() -> None:
    faults = read_faults()
    assert [entry.id for entry in faults] == [f"F{number}" for number in range(1, len(faults) + 1)]
    assert main(["page", "--check"]) == 0
    assert render(faults).count("\n| F") == len(faults)


def test_outcomes_are_found_by_test_and_times_are_the_longest() -> None:
    faults = fault("F2", "test_killed"), fault("F1", "TestCuts::test_cut")
    outcomes = {entry.id: Outcome() for entry in faults}
    take_report(REPORT, faults, outcomes)
    killed, cut = outcomes["F2"], outcomes["F1"]
    assert (killed.passed, killed.failed, killed.seconds) == (2, [], 4.0)
    assert (killed.safe_seconds, killed.recovery_seconds) == (0.75, 3.0)
    assert killed.seen == "as expected (2 tests)"
    assert (cut.passed, cut.failed, cut.seen) == (0, ["test_cut"], "FAILED: test_cut")


JAVA_REPORT = """<testsuite>
<testcase name="aLeaseEnds(Path)[1]" classname="org.kquota.WatchTest" time="1"/>
<testcase name="aLeaseEnds(Path)[2]" classname="org.kquota.WatchTest" time="2"><error/></testcase>
<testcase name="another" classname="org.kquota.WatchTest" time="9"/></testsuite>"""


def test_outcomes_of_the_plug_in_are_found_by_class_and_method() -> None:
    stopped = Fault(
        *("F3", "expected", "problem", "seen", "does", "act"),
        (Mark("callback/WatchTest.java", "WatchTest::aLeaseEnds", "F3", 1),),
    )
    outcomes = {"F3": Outcome()}
    take_java_reports([JAVA_REPORT], [stopped], outcomes)
    assert (outcomes["F3"].passed, outcomes["F3"].seconds) == (1, 3.0)
    assert outcomes["F3"].failed == ["aLeaseEnds(Path)[2]"]


def test_the_page_shows_what_the_last_run_saw(tmp_path: Path) -> None:
    path, faults = tmp_path / "seen.yml", (fault("F2", "test_killed"), fault("F1", "test_cut"))
    assert "act | - | - | - |" in render(faults, read_seen(path))
    keep_seen(path, "2026-11-20", {"F2": Outcome(3, [], 0.04, 12.34), "F1": Outcome(1)})
    keep_seen(path, "2026-11-21", {"F2": Outcome(2, ["test_killed"], 9.0), "F1": Outcome(2)})
    page = render(faults, read_seen(path))
    assert "from 2026-11-20 to 2026-11-21" in page
    assert "| F2 | problem | seen | does | act | 3 | 0 s | 12.3 s |" in page, "the last good run"
    assert "| F1 | problem | seen | does | act | 2 | - | - |" in page


def test_tests_that_could_not_be_run_have_failed() -> None:
    outcomes = {"F2": Outcome()}
    take_report("", [fault("F2", "test_killed")], outcomes)
    assert outcomes["F2"].failed


def test_an_unknown_fault_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "F99"]) == 2
    assert "F99 is none of F1, F2" in capsys.readouterr().err


@pytest.mark.parametrize("row", ["", 'F1: {problem: "a|b", seen: x, does: x, act: x}', "F1: {problem: a}"])
def test_a_row_that_is_missing_or_broken_is_refused(tmp_path: Path, row: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/acceptance.yml").write_text(
        "sources: {ours: us}\nsections:\n  - title: Faults\n    source: ours\n"
        '    statements:\n      F1: {statement: "It is cut off."}\n'
    )
    (tmp_path / "docs/failure-modes.yml").write_text(row)
    with pytest.raises(InvalidCatalogue, match="F1"):
        read_faults(tmp_path)
