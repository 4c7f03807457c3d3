"""The files of mutmut and of PIT, read without them, and judged with the list of equivalent mutants."""

from __future__ import annotations

import json

import pytest
import yaml

from tools.mutants.java_results import SOURCES, read_report
from tools.mutants.python_results import outcome, read_mutants
from tools.mutants.results import LISTS, REPOSITORY, CanNotBeJudged, score, summed_up

SOURCE = """\
class LimitBreach:
    def of(self, n: int) -> bool:
        # at the limit, too
        return n >= 1


def plain() -> int:
    return 1
"""
MUTATED = """\
class LimitBreach:
    @_mutmut_mutated(mutants_of)
    def of(self, n: int) -> bool:
        return n >= 1
    def xǁLimitBreachǁof__mutmut_orig(self, n: int) -> bool:
        # at the limit, too
        return n >= 1
    def xǁLimitBreachǁof__mutmut_1(self, n: int) -> bool:
        # at the limit, too
        return n > 1
def x_plain__mutmut_orig() -> int:
    return 1
def x_plain__mutmut_1() -> int:
    return 2
"""
SPANS = {
    "xǁLimitBreachǁof__mutmut_orig": [5, 7],
    "xǁLimitBreachǁof__mutmut_1": [8, 10],
    "x_plain__mutmut_orig": [11, 12],
    "x_plain__mutmut_1": [13, 14],
}
FILE = "agent/kquota/policy/limit_breaches.py"
OF = {
    "file": FILE,
    "function": "LimitBreach.of",
    "was": "return n >= 1",
    "becomes": "return n > 1",
    "why": "n is 0",
}
MUTATION = """<mutation status='{status}'><sourceFile>Law.java</sourceFile>
<mutatedClass>org.kquota.govern.{name}</mutatedClass><mutatedMethod>limit</mutatedMethod>
<lineNumber>{line}</lineNumber><mutator>org.pitest.mutators.MathMutator</mutator>
<description>Replaced + with -</description></mutation>"""
LAW = {
    "class": "govern.Law",
    "method": "limit",
    "mutator": "MathMutator",
    "text": "b + 0",
    "why": "adds none",
}


@pytest.fixture
def mutmut(tmp_path):
    """The mutants of a campaign in which pytest ended with these exit codes."""

    def of(*exit_codes):
        keys = (
            "kquota.policy.limit_breaches.xǁLimitBreachǁof__mutmut_1",
            "kquota.policy.limit_breaches.x_plain__mutmut_1",
        )
        notes = {
            "meta": {"exit_code_by_key": dict(zip(keys, exit_codes, strict=True))},
            "spans": {"spans": SPANS},
        }
        for folder, text in (("src/kquota/policy", SOURCE), ("mutants/src/kquota/policy", MUTATED)):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / "limit_breaches.py").write_text(text, "utf-8")
        for name, note in notes.items():
            (tmp_path / f"mutants/src/kquota/policy/limit_breaches.py.{name}").write_text(json.dumps(note))
        return [mutant for _, mutant in read_mutants(tmp_path)]

    return of


@pytest.fixture
def pit(tmp_path):
    """The mutants of a report with these: (status, class, line)."""

    def of(*mutants):
        law = tmp_path / "org/kquota/govern/Law.java"
        law.parent.mkdir(parents=True, exist_ok=True)
        law.write_text("double limit() {\n    return a + c;\n    return b + 0;\n}\n")
        body = "".join(MUTATION.format(status=status, name=name, line=line) for status, name, line in mutants)
        (tmp_path / "mutations.xml").write_text(f"<mutations>{body}</mutations>")
        return list(read_report(tmp_path / "mutations.xml", "govern", tmp_path))

    return of


def test_mutants_of_the_agent_are_counted_by_room_and_survivors_have_line_and_change(mutmut):
    results = summed_up(mutmut(0, 0), [OF])
    of_room = {"killed": 0, "survived": 1, "no_coverage": 0, "timed_out": 0, "equivalent": 1}
    survivor = {"file": FILE, "line": 8, "mutator": "plain", "text": "return 1 → return 2"}
    assert results == {"packages": {"policy": of_room}, "survivors": [survivor]}
    assert [mutant.line for mutant in mutmut(None, 33)] == [4, 8]
    assert [mutant.outcome for mutant in mutmut(None, 33)] == ["not_tried", "no_coverage"]


def test_whatever_ends_the_tests_has_noticed_the_mutant():
    assert [outcome(code) for code in (0, 1, 2, 3, 36, -24)] == [
        "survived",
        *["killed"] * 3,
        *["timed_out"] * 2,
    ]


def test_mutants_of_the_plug_in_are_counted_by_package_and_the_law_apart(pit):
    mutants = pit(
        ("KILLED", "Law", 2), ("TIMED_OUT", "Law", 2), ("SURVIVED", "Law", 3), ("NO_COVERAGE", "Law", 2),
        ("KILLED", "GovernorLaw$Step", 2), ("NON_VIABLE", "Law", 2),
    )  # fmt: skip
    packages = summed_up(mutants, [LAW], 1)["packages"]
    one_each = {"killed": 1, "survived": 0, "no_coverage": 1, "timed_out": 1, "equivalent": 1}
    assert packages["govern"] == one_each
    assert packages["govern/GovernorLaw"] == dict.fromkeys(one_each, 0) | {"killed": 1}
    assert score(packages["govern"]) == pytest.approx(200 / 3)
    assert [one["text"] for one in summed_up(mutants, [])["survivors"]] == [
        "return b + 0; (Replaced + with -)",
        "return a + c; (Replaced + with -)",
    ]


def test_an_entry_that_fits_none_or_more_or_gives_no_reason_fails_the_run(mutmut, pit):
    for exit_codes in ((1, 0), (None, 0)):
        with pytest.raises(CanNotBeJudged, match=r"LimitBreach\.of.* matches 0 survivors"):
            summed_up(mutmut(*exit_codes), [OF])
    with pytest.raises(CanNotBeJudged, match="matches 2 survivors"):
        summed_up(pit(("SURVIVED", "Law", 3), ("NO_COVERAGE", "Law", 3)), [LAW], 1)
    with pytest.raises(CanNotBeJudged, match="why"):
        summed_up(mutmut(0, 0), [OF | {"why": ""}])


def test_a_run_that_broke_is_no_result(pit, tmp_path):
    with pytest.raises(CanNotBeJudged, match="RUN_ERROR"):
        pit(("RUN_ERROR", "Law", 2))
    (tmp_path / "mutations.xml").write_text("<mutations><mutation")
    with pytest.raises(CanNotBeJudged, match="not whole"):
        list(read_report(tmp_path / "mutations.xml", "govern"))


@pytest.mark.parametrize("half", ["java", "python"])
def test_entries_of_the_repository_give_a_reason_and_a_place_that_exists(half):
    for entry in yaml.safe_load((LISTS / f"equivalent-{half}.yml").read_text("utf-8")):
        in_java = SOURCES / f"org/kquota/{entry.get('class', '').partition('$')[0].replace('.', '/')}.java"
        assert (REPOSITORY / entry["file"] if half == "python" else in_java).is_file()
        assert entry["why"].strip()
