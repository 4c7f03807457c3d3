"""The page of failure modes, and what is known of the runs of a fault's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.acceptance.marks import Mark
from tools.faults.__main__ import main
from tools.faults.catalogue import Fault, InvalidCatalogue, read_faults
from tools.faults.figures import keep_seen, read_seen
from tools.faults.page import render
from tools.faults.plug_in import results_of
from tools.faults.results import Result, Results
from tools.faults.run import Outcome, outcome


def fault(id_: str, *tests: str) -> Fault:
    marks = tuple(Mark("tests/t.py", test, id_, 1) for test in tests)
    return Fault(id_, "expected", "problem", "seen", "does", "act", marks)


def test_every_fault_has_a_row_and_the_page_is_fresh() -> None:
    faults = read_faults()
    assert [entry.id for entry in faults] == [f"F{number}" for number in range(1, len(faults) + 1)]
    assert main(["page", "--check"]) == 0
    assert render(faults).count("\n| F") == len(faults)


def test_a_line_that_was_cut_short_costs_one_result(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(Result("one", "2026-11-20", 1, (), 2.0, 0.5))
    with results.path.open("a") as file:
        file.write('{"test": "tw')
    results.add(Result("three", "2026-11-21", 0, ("three",)))
    assert list(results.read()) == ["one", "three"]
    results.forget({"one"})
    assert results.read() == {"three": Result("three", "2026-11-21", 0, ("three",))}


def test_a_fault_is_survived_when_all_its_tests_have_passed() -> None:
    one, two = Result("one", "2026-11-21", 2, (), 1.5, 0.5), Result("two", "2026-11-20", 1, (), 1, 0.25, 3)
    assert outcome(["one", "two"], {"one": one, "two": two, "x": one}) == Outcome(
        3, (), 0, 0.5, 3, 2.5, "2026-11-20"
    )
    assert outcome(["one"], {"one": one}).survived
    half = outcome(["one", "two"], {"one": one})
    assert not half.survived
    assert half.seen == "2 tests as expected, of 1 nothing is known yet"
    failed = outcome(["one", "two"], {"one": one, "two": Result("two", "2026-11-20", 0, ("two[a]",))})
    assert not failed.survived
    assert failed.seen == "FAILED: two[a]"
    assert not outcome([], {}).survived


JAVA_REPORT = """<testsuite>
<testcase name="aLeaseEnds(Path)[1]" classname="org.kquota.WatchTest" time="1"/>
<testcase name="aLeaseEnds(Path)[2]" classname="org.kquota.WatchTest" time="2"><error/></testcase>
<testcase name="another" classname="org.kquota.WatchTest" time="9"/></testsuite>"""


def test_outcomes_of_the_plug_in_are_found_by_class_and_method() -> None:
    paths = {"WatchTest::aLeaseEnds": "callback/WatchTest.java::WatchTest::aLeaseEnds"}
    [result] = results_of(JAVA_REPORT, paths)
    assert (result.test, result.passed, result.seconds) == (paths["WatchTest::aLeaseEnds"], 1, 3.0)
    assert result.failed == ("aLeaseEnds(Path)[2]",)


def test_the_page_shows_what_the_last_run_saw(tmp_path: Path) -> None:
    path, faults = tmp_path / "seen.yml", (fault("F2", "test_killed"), fault("F1", "test_cut"))
    assert "act | - | - | - |" in render(faults, read_seen(path))
    early = {"F2": Outcome(3, (), 0, 0.04, 12.34, date="2026-11-20"), "F1": Outcome(1, date="2026-11-20")}
    keep_seen(path, early)
    failed = Outcome(2, ("test_killed",), 0, 9.0, date="2026-11-21")
    keep_seen(path, {"F2": failed, "F1": Outcome(2, date="2026-11-21")})
    keep_seen(path, {"F1": Outcome(1, missing=1, date="2026-11-22")})
    page = render(faults, read_seen(path))
    assert "from 2026-11-20 to 2026-11-21" in page
    assert "| F2 | problem | seen | does | act | 3 | 0 s | 12.3 s |" in page, "the last good run"
    assert "| F1 | problem | seen | does | act | 2 | - | - |" in page


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
