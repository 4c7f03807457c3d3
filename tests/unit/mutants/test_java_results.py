from __future__ import annotations

import pytest

from tools.mutants.java_results import (
    EQUIVALENT,
    REPOSITORY,
    Equivalent,
    equivalent,
    read_equivalents,
    read_report,
    summary,
)
from tools.mutants.results import CanNotBeJudged, score

MUTATION = """<mutation detected='false' status='{status}' numberOfTestsRun='1'>
<sourceFile>Law.java</sourceFile>
<mutatedClass>org.kquota.govern.{name}</mutatedClass>
<mutatedMethod>limit</mutatedMethod><methodDescription>()D</methodDescription>
<lineNumber>{line}</lineNumber><mutator>org.pitest.mutationtest.engine.gregor.mutators.MathMutator</mutator>
<indexes><index>{index}</index></indexes><killingTest/>
<description>Replaced + with -</description></mutation>"""
ENTRY = Equivalent("org.kquota.govern.Law", "limit", "MathMutator", "b + 0", "adding nothing")


@pytest.fixture
def report(tmp_path):
    """A report of these mutants, as PIT writes it: (status, class, line)."""
    sources = tmp_path / "sources"
    (sources / "org/kquota/govern").mkdir(parents=True)
    (sources / "org/kquota/govern/Law.java").write_text(
        "double limit() {\n    return a + c;\n    return b + 0;\n}\n"
    )

    def write(*mutants):
        xml = tmp_path / "mutations.xml"
        body = "".join(
            MUTATION.format(status=status, name=name, line=line, index=index)
            for index, (status, name, line) in enumerate(mutants)
        )
        xml.write_text(f"<mutations>{body}</mutations>")
        return read_report(xml, "govern", sources)

    return write


def test_outcomes_are_counted_by_package_and_the_law_apart(report):
    mutants = report(
        ("KILLED", "Law", 2),
        ("TIMED_OUT", "Law", 2),
        ("SURVIVED", "Law", 3),
        ("SURVIVED", "Law", 3),
        ("NO_COVERAGE", "Law", 2),
        ("KILLED", "GovernorLaw$Step", 2),
        ("NON_VIABLE", "Law", 2),
    )
    result = summary(mutants, set(mutants[3:4]))
    assert result["packages"] == {
        "govern": {"killed": 1, "survived": 1, "no_coverage": 1, "timed_out": 1, "equivalent": 1},
        "govern/GovernorLaw": {"killed": 1, "survived": 0, "no_coverage": 0, "timed_out": 0, "equivalent": 0},
    }
    assert [(survivor["line"], survivor["text"]) for survivor in result["survivors"]] == [
        (2, "return a + c; (Replaced + with -)"),
        (3, "return b + 0; (Replaced + with -)"),
    ]
    assert score(result["packages"]["govern"]) == 50


def test_an_entry_takes_the_survivors_that_it_describes(report):
    mutants = report(
        ("SURVIVED", "Law", 2), ("SURVIVED", "Law", 3), ("KILLED", "Law", 3), ("SURVIVED", "Other", 3)
    )
    assert equivalent(mutants, [ENTRY], {"govern"}) == {mutants[1]}


def test_an_entry_that_describes_none_or_more_fails(report):
    with pytest.raises(CanNotBeJudged, match=r"'b \+ 0' matches 0 survivors, and says 1"):
        equivalent(report(("KILLED", "Law", 3)), [ENTRY], {"govern"})
    with pytest.raises(CanNotBeJudged, match="matches 2 survivors"):
        equivalent(report(("SURVIVED", "Law", 3), ("NO_COVERAGE", "Law", 3)), [ENTRY], {"govern"})
    assert equivalent([], [ENTRY], {"quota"}) == set(), "the package was not run"


def test_a_run_that_broke_is_no_result(report):
    with pytest.raises(CanNotBeJudged, match="RUN_ERROR"):
        report(("RUN_ERROR", "Law", 2))


def test_a_report_that_is_not_whole_is_no_result(tmp_path):
    (tmp_path / "mutations.xml").write_text("<mutations><mutation")
    with pytest.raises(CanNotBeJudged, match="not whole"):
        read_report(tmp_path / "mutations.xml", "govern")


def test_entries_give_a_reason_and_a_place_that_exists():
    for entry in read_equivalents(EQUIVALENT):
        file = (
            REPOSITORY
            / "callback/src/main/java"
            / (entry.class_name.partition("$")[0].replace(".", "/") + ".java")
        )
        assert entry.why.strip()
        assert file.exists()


def test_an_entry_without_a_reason_is_refused(tmp_path):
    file = tmp_path / "list.yml"
    file.write_text("- {class: quota.TagSet, method: touch, mutator: MathMutator, text: a}\n")
    with pytest.raises(CanNotBeJudged, match="why"):
        read_equivalents(file)
