"""The page of failure modes, and the outcome of the tests of a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.acceptance.marks import Mark
from tools.faults import (
    Case,
    Figures,
    main,
    name_of,
    outcome,
    read_faults,
    read_report,
    render,
)

DAY = "2026-11-20"


def mark(test: str) -> Mark:
    return Mark("tests/test_sample.py", test, "F1", 1)


def case(name: str, *, passed: bool = True, safe: float | None = None, date: str = DAY) -> Case:
    return Case(name, passed, date, 1.5, safe, None)


def test_every_fault_has_a_row_and_tests() -> None:
    faults = read_faults()
    assert list(faults) == [f"F{number}" for number in range(1, len(faults) + 1)]
    assert all(fault.tests for fault in faults.values())
    page = render(faults.values(), {"F2": Figures(DAY, 3, 0.5, None)}, "e70dd46")
    assert page.count("\n| F") == len(faults)
    assert "| 3 | 0.5 s | - |" in page


def test_a_fault_is_survived_when_all_its_tests_have_passed() -> None:
    known = {
        "tests.test_sample::test_one": [case("a", safe=0.5), case("b", date="2026-11-19")],
        "tests.test_sample::test_two": [case("c", safe=0.25)],
    }
    both = outcome([mark("test_one"), mark("test_one"), mark("test_two")], known)
    assert both.survived
    assert (both.figures, both.seconds) == (Figures("2026-11-19", 3, 0.5, None), 4.5)
    assert not outcome([mark("test_one"), mark("test_three")], known).survived
    assert not outcome([], known).survived


def test_results_of_the_plug_in_are_found_by_class_and_method(tmp_path: Path) -> None:
    (tmp_path / "TEST-a.xml").write_text(
        '<testsuite><testcase name="aLeaseEnds(Path)[1]" classname="org.kquota.WatchTest$Late" time="1"/>'
        '<testcase name="aLeaseEnds(Path)[2]" classname="org.kquota.WatchTest$Late" time="2"><error/>'
        '</testcase><testcase name="another" classname="org.kquota.WatchTest" time="9"/></testsuite>'
    )
    test = Mark("callback/src/test/java/org/kquota/WatchTest.java", "WatchTest::Late::aLeaseEnds", "F1", 1)
    cases = read_report(tmp_path / "TEST-a.xml")[name_of(test)]
    assert [(one.name, one.passed, one.seconds) for one in cases] == [
        ("aLeaseEnds(Path)[1]", True, 1.0), ("aLeaseEnds(Path)[2]", False, 2.0)
    ]  # fmt: skip


def test_an_unknown_fault_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["F99"]) == 2
    assert "F99 is none of F1, F2" in capsys.readouterr().err


@pytest.mark.parametrize("row", ["", 'F1: {problem: "a|b", seen: x, does: x, act: x}', "F1: {problem: a}"])
def test_a_row_that_is_missing_or_broken_is_refused(tmp_path: Path, row: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/acceptance.yml").write_text(
        "sources: {ours: us}\nsections:\n  - title: Faults\n    source: ours\n"
        '    statements:\n      F1: {statement: "It is cut off."}\n'
    )
    (tmp_path / "docs/failure-modes.yml").write_text(row)
    with pytest.raises(ValueError, match="F1"):
        read_faults(tmp_path)
