"""``python -m tools.mutants.python_results``: run mutmut on the agent's rooms, and collect what came of it.

Mutants are made and tried in ``build/mutants/python``; ``--resume`` tries only those that no test has killed
there. Reads ``tests/mutants/equivalent-python.yml``, and writes ``build/mutants/python.json``. An entry of
the list of equivalents that matches no survivor fails the run.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import yaml

from tools.mutants.results import ALIVE, CanNotBeJudged, Results, alive, keep, summed_up

REPOSITORY = Path(__file__).resolve().parents[2]
STAGE = REPOSITORY / "build/mutants/python"
RESULT = REPOSITORY / "build/mutants/python.json"
EQUIVALENT = REPOSITORY / "tests/mutants/equivalent-python.yml"
TOOLS = REPOSITORY / ".venv-mutants/bin"
ENVIRONMENT = {
    "MUTANTS_CHILDREN": str(os.cpu_count() or 1),
    **os.environ,
    "PYTHONPATH": f"{STAGE}/mutants/src:{STAGE}/mutants",
    "PYTHONDONTWRITEBYTECODE": "1",
    "KQUOTA_PROPERTY_SCALE": "0.1",
}
# Where mutmut's file layout wants them, and where they are.
LAID_OUT = {
    "src": "agent",
    "tests": "tests",
    "schemas": "schemas",
    "testbed": "testbed",
    "campaign.py": "tools/mutants/campaign.py",
    "pyproject.toml": "tools/mutants/mutmut.toml",
}
# Exit codes of pytest, and mutmut's own: 33 is a mutant that no test reaches, 36 and signals are time limits.
OUTCOMES = {
    0: "survived",
    5: "no_coverage",
    33: "no_coverage",
    24: "timed_out",
    36: "timed_out",
    255: "timed_out",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function: ``was`` and ``becomes`` are the lines that differ, without indentation."""

    name: str
    file: str
    line: int
    function: str
    was: str
    becomes: str
    outcome: str

    @property
    def room(self) -> str:
        """The folder below ``agent/kquota``."""
        return self.file.split("/")[2]


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A mutant that no test can distinguish from the code, and why."""

    file: str
    function: str
    was: str
    becomes: str
    why: str

    def matches(self, mutant: Mutant) -> bool:
        """Return whether the mutant is the one that the entry describes, wherever its line is now."""
        return (self.file, self.function, self.was, self.becomes) == (
            mutant.file,
            mutant.function,
            mutant.was,
            mutant.becomes,
        )


def lines_of_functions(source: str) -> dict[str, int]:
    """Return the line of each function's ``def``, by ``function`` or ``Class.function``."""
    found = {}
    for node in ast.parse(source).body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                found[f"{node.name}.{inner.name}" if isinstance(node, ast.ClassDef) else inner.name] = (
                    inner.lineno
                )
    return found


def read_mutants(stage: Path) -> Iterator[Mutant]:
    """Yield mutmut's mutants of each file, from its notes next to the mutated files."""
    for meta in sorted((stage / "mutants/src").rglob("*.meta")):
        mutated = meta.with_suffix("")
        file = mutated.relative_to(stage / "mutants")
        results: dict[str, int | None] = json.loads(meta.read_text("utf-8"))["exit_code_by_key"]
        if not results:
            continue
        spans = json.loads(mutated.with_name(mutated.name + ".spans").read_text("utf-8"))["spans"]
        text = mutated.read_text("utf-8").splitlines()
        defined_at = lines_of_functions((stage / file).read_text("utf-8"))

        def code(name: str, spans: dict[str, list[int]] = spans, text: list[str] = text) -> list[str]:
            first, last = spans[name]
            found = text[first - 1 : last]
            start = next(
                number for number, line in enumerate(found) if line.lstrip().startswith(("def ", "async "))
            )
            return [line.strip().replace(f"{name}(", "(", 1) for line in found[start:]]

        for key, exit_code in results.items():
            name = key.rpartition(".")[2]
            mangled = name.rpartition("__mutmut_")[0]
            function = mangled[2:].replace("ǁ", ".") if mangled.startswith("xǁ") else mangled[2:]
            original, mutant = code(f"{mangled}__mutmut_orig"), code(name)
            changes = [
                change
                for change in difflib.SequenceMatcher(None, original, mutant, autojunk=False).get_opcodes()
                if change[0] != "equal"
            ]
            first, last = changes[0][1], changes[-1][2]
            yield Mutant(
                name=key,
                file="agent/" + str(file.relative_to("src")),
                line=defined_at.get(function, 0) + first,
                function=function,
                was="\n".join(original[first:last]),
                becomes="\n".join(mutant[changes[0][3] : changes[-1][4]]),
                outcome="not_tried" if exit_code is None else outcome(exit_code),
            )


def outcome(exit_code: int) -> str:
    """Return the meaning of an exit code: any other end of pytest has noticed the mutant."""
    return "timed_out" if exit_code < 0 else OUTCOMES.get(exit_code, "killed")


def read_equivalents(file: Path) -> list[Equivalent]:
    """Return the entries of the list of equivalents."""
    try:
        return [Equivalent(**entry) for entry in yaml.safe_load(file.read_text("utf-8")) or []]
    except TypeError as e:
        raise CanNotBeJudged(f"{file}: {e}") from e


def equivalent(mutants: Sequence[Mutant], entries: Iterable[Equivalent]) -> set[Mutant]:
    """Return the survivors that are listed as equivalent; each entry has to match one."""
    survivors = alive(mutants)
    found: set[Mutant] = set()
    for entry in entries:
        matched = [mutant for mutant in survivors if entry.matches(mutant)]
        if not matched:
            raise CanNotBeJudged(
                f"{EQUIVALENT.name}: {entry.file}, {entry.function}, {entry.was!r} matches no survivor"
            )
        found.update(matched)
    return found


def summary(mutants: Sequence[Mutant], proved: set[Mutant]) -> Results:
    """Return what goes into the JSON file."""
    return summed_up(
        mutants,
        proved,
        lambda mutant: mutant.room,
        lambda mutant: {
            "file": mutant.file,
            "line": mutant.line,
            "mutator": "no test reaches it" if mutant.outcome == "no_coverage" else mutant.function,
            "text": f"{mutant.was} → {mutant.becomes}",
        },
    )


def run(stage: Path, *, resume: bool, patterns: Sequence[str]) -> None:
    """Let mutmut make the mutants that are missing, then try those that nothing has killed yet."""
    if not resume:
        shutil.rmtree(stage, ignore_errors=True)
    # Python remembers a folder that is missing from its path at its start.
    (stage / "mutants/src").mkdir(parents=True, exist_ok=True)
    for name, target in LAID_OUT.items():
        if not (stage / name).is_symlink():
            (stage / name).symlink_to(REPOSITORY / target)
    for meta in (stage / "mutants/src").rglob("*.meta"):
        if not (stage / meta.relative_to(stage / "mutants").with_suffix("")).exists():
            meta.unlink()
            meta.with_suffix("").unlink()
    # Which test reaches what is found out again: tests may have changed.
    shutil.rmtree(stage / "mutants/tests", ignore_errors=True)
    (stage / "mutants/mutmut-stats.json").unlink(missing_ok=True)
    # It makes the mutants, and notes which tests reach which function; then it finds none of that name.
    made = subprocess.run(
        [TOOLS / "mutmut", "run", "none"],
        cwd=stage,
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        text=True,
    )
    if not (stage / "mutants/mutmut-stats.json").exists():
        said = f"{made.stdout[-3000:]}\n{made.stderr[-3000:]}"
        raise CanNotBeJudged(f"the tests have to pass without a mutant:\n{said}")
    names = [
        mutant.name
        for mutant in read_mutants(stage)
        if mutant.outcome in (*ALIVE, "not_tried")
        and (not patterns or any(fnmatch(mutant.name, pattern) for pattern in patterns))
    ]
    (stage / "names").write_text("\n".join(names), "utf-8")
    selection = tomllib.loads((stage / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]
    subprocess.run(
        [
            *(TOOLS / "python", "-m", "pytest", "-s", "-p", "no:terminal", "--rootdir=."),
            *selection["pytest_add_cli_args_test_selection"],
            *selection["pytest_add_cli_args"],
        ],
        cwd=stage / "mutants",
        env=ENVIRONMENT | {"MUTANTS_TO_TRY": str(stage / "names")},
        check=True,
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign, write the JSON file, and print a line for each room."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", action="store_true", help="try only what no test has killed yet")
    parser.add_argument("--collect", action="store_true", help="try nothing: only write the file again")
    parser.add_argument(
        "patterns", nargs="*", help="mutants to try, as kquota.core.votes.*; all of them by default"
    )
    options = parser.parse_args(arguments)
    try:
        if not options.collect:
            run(STAGE, resume=options.resume, patterns=options.patterns)
        mutants = list(read_mutants(STAGE))
        untried = Counter(mutant.room for mutant in mutants if mutant.outcome == "not_tried")
        if untried:
            raise CanNotBeJudged(f"not tried yet: {dict(untried)}; --resume tries them")
        proved = equivalent(mutants, read_equivalents(EQUIVALENT))
    except CanNotBeJudged as e:
        print(e, file=sys.stderr)
        return 1
    keep(summary(mutants, proved), RESULT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
