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
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from tools.mutants.results import ALIVE, BUILD, REPOSITORY, CanNotBeJudged, Mutant, Results, judged, kept

STAGE = BUILD / "python"
TOOLS = REPOSITORY / ".venv-mutants/bin"
ENVIRONMENT = {
    "MUTANTS_CHILDREN": str(os.cpu_count() or 1),
    **os.environ,
    "PYTHONPATH": f"{STAGE}/mutants/src:{STAGE}/mutants",
    "PYTHONDONTWRITEBYTECODE": "1",
    "KQUOTA_PROPERTY_SCALE": "0.1",
    "KQUOTA_PATIENCE_SECONDS": "5",
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


def read_mutants(stage: Path) -> Iterator[tuple[str, Mutant]]:
    """Yield mutmut's mutants with their names, from its notes next to the mutated files."""
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
            path = "agent/" + str(file.relative_to("src"))
            was, becomes = "\n".join(original[first:last]), "\n".join(mutant[changes[0][3] : changes[-1][4]])
            fate = "not_tried" if exit_code is None else outcome(exit_code)
            yield (
                key,
                Mutant(
                    path.split("/")[2],
                    path,
                    defined_at.get(function, 0) + first,
                    "no test reaches it" if fate == "no_coverage" else function,
                    f"{was} → {becomes}",
                    fate,
                    {"file": path, "function": function, "was": was, "becomes": becomes},
                ),
            )


def outcome(exit_code: int) -> str:
    """Return the meaning of an exit code: any other end of pytest has noticed the mutant."""
    return "timed_out" if exit_code < 0 else OUTCOMES.get(exit_code, "killed")


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
        name
        for name, mutant in read_mutants(stage)
        if mutant.outcome in (*ALIVE, "not_tried")
        and (not patterns or any(fnmatch(name, pattern) for pattern in patterns))
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


def _campaign(options: argparse.Namespace) -> Results:
    if not options.collect:
        run(STAGE, resume=options.resume, patterns=options.patterns)
    mutants = [mutant for _, mutant in read_mutants(STAGE)]
    if untried := Counter(mutant.part for mutant in mutants if mutant.outcome == "not_tried"):
        raise CanNotBeJudged(f"not tried yet: {dict(untried)}; --resume tries them")
    return judged("python", mutants)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", action="store_true", help="try only what no test has killed yet")
    parser.add_argument("--collect", action="store_true", help="try nothing: only write the file again")
    parser.add_argument(
        "patterns", nargs="*", help="mutants to try, as kquota.policy.limit_breaches.*; by default all"
    )
    chosen = parser.parse_args()
    sys.exit(kept("python", lambda: _campaign(chosen)))
