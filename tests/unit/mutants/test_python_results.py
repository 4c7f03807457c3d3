"""mutmut's files of a campaign, read without mutmut."""

from __future__ import annotations

import json

import pytest

from tools.mutants.python_results import (
    EQUIVALENT,
    Equivalent,
    equivalent,
    outcome,
    read_equivalents,
    read_mutants,
    summary,
)
from tools.mutants.results import CanNotBeJudged

SOURCE = """\
class Vote:
    def of(self, n: int) -> bool:
        # at the limit, too
        return n >= 1


def plain() -> int:
    return 1
"""
MUTATED = """\
mutants_of: MutantDict = {}
class Vote:
    @_mutmut_mutated(mutants_of)
    def of(self, n: int) -> bool:
        # at the limit, too
        return n >= 1
    def xǁVoteǁof__mutmut_orig(self, n: int) -> bool:
        # at the limit, too
        return n >= 1
    def xǁVoteǁof__mutmut_1(self, n: int) -> bool:
        # at the limit, too
        return n > 1
    def xǁVoteǁof__mutmut_2(self, n: int) -> bool:
        # at the limit, too
        return n >= 2
def x_plain__mutmut_orig() -> int:
    return 1
def x_plain__mutmut_1() -> int:
    return 2
"""
SPANS = {
    "xǁVoteǁof__mutmut_orig": [7, 9],
    "xǁVoteǁof__mutmut_1": [10, 12],
    "xǁVoteǁof__mutmut_2": [13, 15],
    "x_plain__mutmut_orig": [16, 17],
    "x_plain__mutmut_1": [18, 19],
}
KEYS = (
    "kquota.core.votes.xǁVoteǁof__mutmut_1",
    "kquota.core.votes.xǁVoteǁof__mutmut_2",
    "kquota.core.votes.x_plain__mutmut_1",
)
FILE = "agent/kquota/core/votes.py"
ENTRY = Equivalent(FILE, "Vote.of", "return n >= 1", "return n > 1", "nobody asks with one")


@pytest.fixture
def campaign(tmp_path):
    """The mutants of a campaign in which pytest ended with these exit codes."""

    def of(*exit_codes):
        for folder, text in (("src/kquota/core", SOURCE), ("mutants/src/kquota/core", MUTATED)):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / "votes.py").write_text(text, "utf-8")
        notes = tmp_path / "mutants/src/kquota/core"
        notes.joinpath("votes.py.meta").write_text(
            json.dumps({"exit_code_by_key": dict(zip(KEYS, exit_codes, strict=True))})
        )
        notes.joinpath("votes.py.spans").write_text(json.dumps({"version": 1, "spans": SPANS}))
        return list(read_mutants(tmp_path))

    return of


def test_a_mutant_has_its_function_its_line_and_what_changed(campaign):
    found = campaign(0, 1, None)
    assert [
        (mutant.function, mutant.line, mutant.was, mutant.becomes, mutant.outcome) for mutant in found
    ] == [
        ("Vote.of", 4, "return n >= 1", "return n > 1", "survived"),
        ("Vote.of", 4, "return n >= 1", "return n >= 2", "killed"),
        ("plain", 8, "return 1", "return 2", "not_tried"),
    ]
    assert {mutant.file for mutant in found} == {FILE}


@pytest.mark.parametrize(
    ("exit_code", "expected"),
    [
        (0, "survived"),
        (1, "killed"),
        (2, "killed"),
        (3, "killed"),
        (33, "no_coverage"),
        (36, "timed_out"),
        (-24, "timed_out"),
    ],
)
def test_whatever_ends_the_tests_has_noticed_the_mutant(exit_code, expected):
    assert outcome(exit_code) == expected


def test_an_equivalent_mutant_is_neither_a_survivor_nor_killed(campaign):
    found = campaign(0, 1, 33)
    results = summary(found, equivalent(found, [ENTRY]))
    assert results["packages"] == {
        "core": {"killed": 1, "survived": 0, "no_coverage": 1, "timed_out": 0, "equivalent": 1}
    }
    assert [survivor["text"] for survivor in results["survivors"]] == ["return 1 → return 2"]


@pytest.mark.parametrize("exit_codes", [(1, 0, 0), (None, 0, 0)])
def test_an_entry_that_matches_no_survivor_fails_the_run(campaign, exit_codes):
    with pytest.raises(CanNotBeJudged, match=r"Vote\.of"):
        equivalent(campaign(*exit_codes), [ENTRY])


def test_an_entry_without_a_reason_is_refused(tmp_path):
    entries = tmp_path / "equivalent.yml"
    entries.write_text("- {file: a, function: b, was: c, becomes: d}\n")
    with pytest.raises(CanNotBeJudged, match="why"):
        read_equivalents(entries)


def test_the_list_of_the_repository_can_be_read():
    read_equivalents(EQUIVALENT)
