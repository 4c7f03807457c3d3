"""``python -m tools.mutants.java_results``: PIT's reports of the plug-in's packages as one JSON file.

Reads ``build/mutants/java/<package>/mutations.xml`` and ``tests/mutants/equivalent-java.yml``, and writes
``build/mutants/java.json``. An entry of the list of equivalents that matches no survivor fails the run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from tools.mutants.results import BUILD, REPOSITORY, CanNotBeJudged, Mutant, Results, judged, kept

SOURCES = REPOSITORY / "callback/src/main/java"
# Classes that have a score of their own, apart from that of their package.
APART = {"govern.GovernorLaw": "govern/GovernorLaw"}
OUTCOMES = {
    "KILLED": "killed",
    "MEMORY_ERROR": "killed",
    "SURVIVED": "survived",
    "NO_COVERAGE": "no_coverage",
    "TIMED_OUT": "timed_out",
}


def read_report(report: Path, package: str, sources: Path = SOURCES) -> Iterator[Mutant]:
    """Yield the mutants of one package's ``mutations.xml``."""
    try:
        root = ElementTree.parse(report).getroot()
    except ElementTree.ParseError as error:
        raise CanNotBeJudged(f"{report} is not whole, {error}; run the package again") from error
    for element in root.iter("mutation"):
        status = element.get("status", "")
        if status == "NON_VIABLE":
            continue
        if status not in OUTCOMES:
            raise CanNotBeJudged(f"{report}: status {status} is no result; run the package again")
        class_name = element.findtext("mutatedClass", "").removeprefix("org.kquota.")
        line = int(element.findtext("lineNumber", "0"))
        file = sources / f"org/kquota/{package}" / element.findtext("sourceFile", "")
        source = file.read_text("utf-8").splitlines()[line - 1].strip()
        mutator = element.findtext("mutator", "").rpartition(".")[2]
        text = f"{source} ({element.findtext('description', '')})"
        yield Mutant(
            APART.get(class_name.partition("$")[0], package),
            str(file.relative_to(REPOSITORY)) if file.is_relative_to(REPOSITORY) else str(file),
            line,
            mutator,
            text,
            OUTCOMES[status],
            {
                "class": class_name,
                "method": element.findtext("mutatedMethod", ""),
                "mutator": mutator,
                "text": text,
            },
        )


def _campaign() -> Results:
    reports = sorted(BUILD.glob("java/*/mutations.xml"))
    packages = {report.parent.name for report in reports}
    mutants = [mutant for report in reports for mutant in read_report(report, report.parent.name)]
    mutants.sort(key=lambda mutant: (mutant.file, mutant.line, mutant.mutator))
    return judged("java", mutants, lambda class_name: class_name.partition(".")[0] in packages, 1)


if __name__ == "__main__":
    sys.exit(kept("java", _campaign))
