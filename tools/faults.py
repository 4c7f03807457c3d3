"""``python -m tools.faults F13``: run the tests of faults, and note what they showed of this commit."""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter
from rich.console import Console
from rich.table import Table

from testbed.loopback.runtime import MAVEN
from tools.acceptance.marks import Mark, collect_marks
from tools.acceptance.statements import Line, read_statements

REPOSITORY = Path(__file__).resolve().parents[1]
_STOPPED = ".stopped.xml"
_SEEN = "seen.yml"
_PARAMETERS = re.compile(r"\W.*", re.DOTALL)
_HEAD = """\
# Failure modes

The faults around a cluster that kquota guards, with their signs and remedies. Each has tests
that inject it; [acceptance-tests.md](acceptance-tests.md) lists them. `make fault F=F13` runs those of one,
`make faults` all, and both print the expected and the observed state, and how long it took until the state
was safe and until it was normal again.

The last columns show how many tests of a fault passed in their last whole run on {of}, and the longest of
their times. These are with the settings of the tests: reports every 2 s, stale after 5 to
25 s, leases of 8 to 20 s, about a third of the defaults; on hosts with systemd (F3, F17, F18) with the
defaults. They include what the fault itself takes, such as a session that times out. `-`: nothing changes in
that fault, or its test has no such moment.

| | problem | sign | kquota's reaction | remedy | passed | safe after | normal after |
|---|---|---|---|---|---|---|---|
"""


class Row(BaseModel):
    """A fault in docs/failure-modes.yml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    problem: Line
    seen: Line
    does: Line
    act: Line


@dataclass(frozen=True, slots=True)
class Fault:
    """``expected`` is the statement of docs/acceptance.yml; ``tests`` carry its id."""

    id: str
    expected: str
    row: Row
    tests: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of the last whole run of a fault's tests; seconds are None if no test measures them."""

    date: str
    tests: int
    safe_seconds: float | None
    recovery_seconds: float | None


@dataclass(frozen=True, slots=True)
class Case:
    """A test with certain parameters, as one of JUnit's reports has it."""

    name: str
    passed: bool
    date: str
    seconds: float
    safe_seconds: float | None
    recovery_seconds: float | None


def read_faults(repository: Path = REPOSITORY) -> dict[str, Fault]:
    """Return all faults, in the order of their numbers.

    Raises:
        ValueError: a fault without a row, a row without a fault, or a text that is missing.
        OSError: a file can't be read.
    """
    statements = read_statements(repository / "docs/acceptance.yml").by_id
    text = (repository / "docs/failure-modes.yml").read_text("utf-8")
    rows = TypeAdapter(dict[str, Row]).validate_python(yaml.safe_load(text) or {})
    ids = sorted((id_ for id_ in statements if id_.startswith("F")), key=_number)
    if different := sorted(rows.keys() ^ set(ids)):
        raise ValueError(f"failure-modes.yml: {', '.join(different)} is not in both lists")
    marks, _ = collect_marks(repository, statements)
    tests = {id_: tuple(sorted(mark for mark in marks if mark.statement_id == id_)) for id_ in ids}
    return {id_: Fault(id_, statements[id_].statement, rows[id_], tests[id_]) for id_ in ids}


def read_seen(repository: Path = REPOSITORY) -> dict[str, Figures]:
    """Return the figures by fault, of this commit alone."""
    path = reports_of(repository) / _SEEN
    rows = yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}
    return {id_: Figures(**row) for id_, row in rows.items()}


def commit_of(repository: Path) -> str:
    """Return the name of what is checked out, with a mark where it was changed."""
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


def reports_of(repository: Path) -> Path:
    """Return the folder of reports: what one commit has shown says nothing of another."""
    return repository / "build/faults" / commit_of(repository)


def render(faults: Iterable[Fault], seen: Mapping[str, Figures], commit: str) -> str:
    """Return the page."""
    page = _HEAD.format(of=commit)
    for fault in faults:
        figures = seen.get(fault.id, Figures("", 0, None, None))
        times = (
            f"{t:g} s" if t is not None else "-" for t in (figures.safe_seconds, figures.recovery_seconds)
        )
        cells = [fault.id, *fault.row.model_dump().values(), str(figures.tests or "-"), *times]
        page += f"| {' | '.join(cells)} |\n"
    return page


def name_of(mark: Mark) -> str:
    """Return the name of a test in JUnit's reports."""
    *classes, test = mark.test.split("::")
    if mark.path.endswith(".java"):
        package = mark.path.partition("/java/")[2].rpartition("/")[0].replace("/", ".")
        return f"{package}.{'$'.join(classes)}::{test}"
    return f"{'.'.join([mark.path.removesuffix('.py').replace('/', '.'), *classes])}::{test}"


def read_report(path: Path) -> dict[str, list[Case]]:
    """Return the tests of one of JUnit's reports."""
    found: dict[str, list[Case]] = {}
    date = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name")
        if name is None:
            continue  # pytest was interrupted
        noted = [(entry.get("name"), entry.get("value")) for entry in case.iter("property")]
        safe = _longest(float(value or "") for key, value in noted if key == "safe_seconds")
        recovery = _longest(float(value or "") for key, value in noted if key == "recovery_seconds")
        passed = all(case.find(tag) is None for tag in ("failure", "error", "skipped"))
        seconds = float(case.get("time", "0"))
        test = f"{case.get('classname')}::{_PARAMETERS.sub('', name)}"
        found.setdefault(test, []).append(Case(name, passed, date, seconds, safe, recovery))
    if found and path.name.endswith(_STOPPED):
        found.popitem()  # not all of its parameters may have run
    return found


def read_reports(folder: Path, since: float) -> dict[str, list[Case]]:
    """Return what each test showed in its last run since a time of the wall clock."""
    reports = sorted((path.stat().st_mtime, path) for path in folder.glob("*.xml"))
    return dict(entry for at, path in reports if at >= since for entry in read_report(path).items())


def run(marks: Collection[Mark], minutes: float = math.inf, repository: Path = REPOSITORY) -> None:
    """Run the tests with pytest and then Maven, which report to `reports_of`; begin none after `minutes`."""
    # in the order of their files: some share a cluster and follow each other
    in_order = sorted(marks, key=lambda mark: (mark.path, mark.line))
    tests = list(dict.fromkeys(f"{mark.path}::{mark.test}" for mark in in_order if mark.path.endswith(".py")))
    classes = sorted({Path(mark.path).stem for mark in marks if mark.path.endswith(".java")})
    begun_at = time.time()
    reports = reports_of(repository)
    if tests:
        report = reports / f"{begun_at:.0f}.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-o", "junit_family=xunit1"]
        command += [
            f"--junitxml={report}",
            *([f"--session-timeout={60 * minutes}"] if minutes < math.inf else []),
        ]
        process = subprocess.Popen([*command, *tests], cwd=repository)
        while process.returncode is None:
            with suppress(KeyboardInterrupt):  # it has had the terminal's Ctrl-C, too
                process.wait()
        if process.returncode == pytest.ExitCode.INTERRUPTED or time.time() - begun_at > 60 * minutes:
            report.rename(report.with_suffix(_STOPPED))
            return
    if classes:
        ids = sorted({mark.statement_id for mark in marks})
        command = [
            str(MAVEN),
            "-q",
            "-B",
            "-ntp",
            "-f",
            "callback/pom.xml",
            "-Plong",
            f"-Dtest={','.join(classes)}",
        ]
        command += [f"-Dgroups={'|'.join(ids)}", "-Dsurefire.failIfNoSpecifiedTests=false", "test"]
        with suppress(KeyboardInterrupt):
            subprocess.run(command, cwd=repository, check=False)
        reports.mkdir(parents=True, exist_ok=True)
        for path in (repository / "callback/target/surefire-reports").glob("TEST-*.xml"):
            if path.stat().st_mtime >= begun_at:
                shutil.copy(path, reports / f"{begun_at:.0f}-{path.name}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of the tests of a fault in a run."""

    survived: bool
    seen: str
    seconds: float
    figures: Figures


def outcome(tests: Iterable[Mark], found: Mapping[str, Collection[Case]]) -> Outcome:
    """Put together the tests of a fault; seconds are the longest of any."""
    names = sorted({name_of(mark) for mark in tests})
    cases = [case for name in names for case in found.get(name, ())]
    failed = [case.name for case in cases if not case.passed]
    missing = sum(name not in found for name in names)
    passed = len(cases) - len(failed)
    seen = f"as expected ({passed} tests)"
    if failed:
        seen = f"FAILED: {', '.join(failed)}"
    elif missing:
        seen = f"{passed} tests as expected, {missing} not yet run"
    safe = _longest(case.safe_seconds for case in cases)
    recovery = _longest(case.recovery_seconds for case in cases)
    figures = Figures(min((case.date for case in cases), default=""), passed, safe, recovery)
    return Outcome(
        bool(passed) and not failed and not missing, seen, sum(case.seconds for case in cases), figures
    )


def main(arguments: list[str] | None = None, repository: Path = REPOSITORY) -> int:
    """Run; return 0 when all is well, 1 for a fault not survived, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("faults", nargs="*", help="ids such as F13; all by default")
    parser.add_argument("--resume", action="store_true", help="run only what has not passed yet")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="begin no test after this many; go on with --resume"
    )
    options = parser.parse_args(arguments)
    try:
        faults = read_faults(repository)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if unknown := [id_ for id_ in options.faults if id_ not in faults]:
        print(f"{', '.join(unknown)} is none of {', '.join(faults)}", file=sys.stderr)
        return 2
    chosen = [faults[id_] for id_ in options.faults or faults]
    reports, since = reports_of(repository), 0 if options.resume else time.time()
    known = read_reports(reports, since)
    marks = {mark for fault in chosen for mark in fault.tests}
    run({mark for mark in marks if not outcome([mark], known).survived}, options.minutes, repository)
    known = read_reports(reports, since)
    outcomes = {fault.id: outcome(fault.tests, known) for fault in chosen}
    seen = read_seen(repository)
    seen |= {id_: one.figures for id_, one in outcomes.items() if one.survived}
    rows = {id_: asdict(seen[id_]) for id_ in sorted(seen, key=_number)}
    reports.mkdir(parents=True, exist_ok=True)
    lines = yaml.safe_dump(rows, sort_keys=False, default_flow_style=None, width=200)
    (reports / _SEEN).write_text(lines, "utf-8")
    Console().print(_table(chosen, outcomes))
    return 0 if all(one.survived for one in outcomes.values()) else 1


def _table(faults: Iterable[Fault], outcomes: Mapping[str, Outcome]) -> Table:
    table = Table(padding=(0, 1), pad_edge=False, box=None, show_lines=True)
    for column in ("fault", "expected", "seen", "safe after", "normal after", "tests took"):
        table.add_column(column, overflow="fold")
    for fault in faults:
        one = outcomes[fault.id]
        times = (one.figures.safe_seconds, one.figures.recovery_seconds, one.seconds)
        shown = ("-" if seconds is None else f"{seconds:.1f} s" for seconds in times)
        table.add_row(fault.id, fault.expected, one.seen, *shown, style=None if one.survived else "red")
    return table


def _longest(times: Iterable[float | None]) -> float | None:
    return max((round(seconds, 1) for seconds in times if seconds is not None), default=None)


def _number(id_: str) -> int:
    return int(id_[1:])


if __name__ == "__main__":
    sys.exit(main())
