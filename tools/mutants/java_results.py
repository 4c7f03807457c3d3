"""``python -m tools.mutants.java_results``: PIT's reports of the plug-in's packages as one JSON file.

Reads ``build/mutants/java/<package>/mutations.xml`` and ``tests/mutants/equivalent-java.yml``, and writes
``build/mutants/java.json``. An entry of the list of equivalents that matches no survivor fails the run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import yaml

from tools.mutants.results import CanNotBeJudged, Results, alive, keep, summed_up

REPOSITORY = Path(__file__).resolve().parents[2]
REPORTS = REPOSITORY / "build/mutants/java"
RESULT = REPOSITORY / "build/mutants/java.json"
EQUIVALENT = REPOSITORY / "tests/mutants/equivalent-java.yml"
SOURCES = REPOSITORY / "callback/src/main/java"
# Classes that have a score of their own, apart from that of their package.
APART = {"org.kquota.govern.GovernorLaw": "govern/GovernorLaw"}
OUTCOMES = {
    "KILLED": "killed",
    "MEMORY_ERROR": "killed",
    "SURVIVED": "survived",
    "NO_COVERAGE": "no_coverage",
    "TIMED_OUT": "timed_out",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change that PIT made to one line."""

    package: str
    class_name: str
    method: str
    file: str
    line: int
    mutator: str
    index: int
    text: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Mutants that no test can distinguish from the code, and why."""

    class_name: str
    method: str
    mutator: str
    text: str
    why: str
    count: int = 1

    def matches(self, mutant: Mutant) -> bool:
        """Return whether the mutant is one that the entry describes."""
        return (mutant.class_name, mutant.method, mutant.mutator) == (
            self.class_name,
            self.method,
            self.mutator,
        ) and self.text in mutant.text


def read_report(report: Path, package: str, sources: Path = SOURCES) -> list[Mutant]:
    """Return the mutants of one package's ``mutations.xml``."""
    found = []
    try:
        root = ElementTree.parse(report).getroot()
    except ElementTree.ParseError as e:
        raise CanNotBeJudged(f"{report} is not whole, {e}; run the package again") from e
    for element in root.iter("mutation"):
        status = element.get("status", "")
        if status == "NON_VIABLE":
            continue
        if status not in OUTCOMES:
            raise CanNotBeJudged(f"{report}: status {status} is no result; run the package again")
        class_name = element.findtext("mutatedClass", "")
        line = int(element.findtext("lineNumber", "0"))
        file = sources / class_name.rpartition(".")[0].replace(".", "/") / element.findtext("sourceFile", "")
        source = file.read_text("utf-8").splitlines()[line - 1].strip()
        found.append(
            Mutant(
                package=APART.get(class_name.partition("$")[0], package),
                class_name=class_name,
                method=element.findtext("mutatedMethod", ""),
                file=str(file.relative_to(REPOSITORY)) if file.is_relative_to(REPOSITORY) else str(file),
                line=line,
                mutator=element.findtext("mutator", "").rpartition(".")[2],
                index=int(element.findtext("indexes/index", "0")),
                text=f"{source} ({element.findtext('description', '')})",
                outcome=OUTCOMES[status],
            )
        )
    return found


def read_equivalents(file: Path) -> list[Equivalent]:
    """Return the entries of the list of equivalents."""
    entries = yaml.safe_load(file.read_text("utf-8")) or []
    try:
        return [
            Equivalent(
                class_name=f"org.kquota.{entry['class']}",
                method=entry["method"],
                mutator=entry["mutator"],
                text=entry["text"],
                why=entry["why"],
                count=entry.get("count", 1),
            )
            for entry in entries
        ]
    except KeyError as e:
        raise CanNotBeJudged(f"{file}: an entry has no {e}") from e


def equivalent(mutants: Iterable[Mutant], entries: Sequence[Equivalent], reported: set[str]) -> set[Mutant]:
    """Return the survivors that are proved equivalent.

    Each entry of a package that is reported has to match the number that it states.
    """
    survivors = alive(mutants)
    found: set[Mutant] = set()
    for entry in entries:
        if entry.class_name.split(".")[2] not in reported:
            continue
        matched = [mutant for mutant in survivors if entry.matches(mutant)]
        if len(matched) != entry.count:
            raise CanNotBeJudged(
                f"{EQUIVALENT.name}: {entry.class_name}.{entry.method}, {entry.mutator}, {entry.text!r} "
                f"matches {len(matched)} survivors, and says {entry.count}"
            )
        found.update(matched)
    return found


def summary(mutants: Sequence[Mutant], proved: set[Mutant]) -> Results:
    """Return what goes into the JSON file."""
    return summed_up(
        sorted(mutants, key=lambda mutant: (mutant.file, mutant.line, mutant.mutator)),
        proved,
        lambda mutant: mutant.package,
        lambda mutant: {
            "file": mutant.file,
            "line": mutant.line,
            "mutator": mutant.mutator,
            "text": mutant.text,
        },
    )


def main() -> int:
    """Write the JSON file, and print a line for each package."""
    reports = sorted(REPORTS.glob("*/mutations.xml"))
    try:
        mutants = [mutant for report in reports for mutant in read_report(report, report.parent.name)]
        proved = equivalent(mutants, read_equivalents(EQUIVALENT), {report.parent.name for report in reports})
    except CanNotBeJudged as e:
        print(e, file=sys.stderr)
        return 1
    keep(summary(mutants, proved), RESULT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
