"""Running the tests of faults, and what they showed of each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.faults.catalogue import REPOSITORY, Fault
from tools.faults.plug_in import run_plug_in
from tools.faults.results import Result, Results
from tools.faults.watching import watch


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests of one fault showed; seconds are the longest of any, None where none measured them."""

    passed: int = 0
    failed: tuple[str, ...] = ()
    missing: int = 0
    safe_seconds: float | None = None
    recovery_seconds: float | None = None
    seconds: float = 0.0
    date: str = ""
    """Of the oldest result among them."""

    @property
    def survived(self) -> bool:
        """Whether all its tests have run and passed."""
        return self.passed > 0 and not self.failed and not self.missing

    @property
    def seen(self) -> str:
        """In words."""
        if self.failed:
            return f"FAILED: {', '.join(self.failed)}"
        if self.missing:
            return f"{self.passed} tests as expected, of {self.missing} nothing is known yet"
        return f"as expected ({self.passed} tests)" if self.passed else "no test ran"


def tests_of(fault: Fault) -> tuple[str, ...]:
    """The tests of a fault, ``path::name``; each once."""
    return tuple(dict.fromkeys(f"{mark.path}::{mark.test}" for mark in fault.tests))


def outcome(tests: Iterable[str], results: Mapping[str, Result]) -> Outcome:
    """Put together what is known of the tests of one fault."""
    tests = tuple(tests)
    known = [results[test] for test in tests if test in results]
    if not known:
        return Outcome(missing=len(tests))
    total = sum(known[1:], start=known[0])
    return Outcome(
        total.passed,
        total.failed,
        len(tests) - len(known),
        total.safe_seconds,
        total.recovery_seconds,
        total.seconds,
        total.date,
    )


def run(
    faults: Sequence[Fault],
    results: Results,
    *,
    java: bool = True,
    quick: bool = False,
    resume: bool = False,
    minutes: float | None = None,
    look: Callable[[], None] = lambda: None,
) -> None:
    """Inject the faults, save each result as it comes, and call ``look`` each second.

    With ``resume`` only what has not passed yet is run; ``quick`` leaves out what takes minutes. No test
    begins after ``minutes``; those of the plug-in come last, at once.
    """
    # in the order of their files: some share a cluster and follow each other
    marks = sorted({(m.path, m.line, f"{m.path}::{m.test}") for f in faults for m in f.tests})
    tests = list(dict.fromkeys(test for _, _, test in marks))
    if resume:
        known = results.read()
        tests = [test for test in tests if test not in known or known[test].failed]
    results.forget(tests)
    of_python = [test for test in tests if ".py::" in test]
    of_java = [test for test in tests if ".java::" in test]
    if of_python and run_pytest(of_python, results, quick=quick, minutes=minutes, look=look) == "stopped":
        return
    if java:
        ids = [fault.id for fault in faults if fault.has_java_tests]
        run_plug_in(of_java, ids, results, quick=quick, look=look)


def run_pytest(
    tests: Sequence[str],
    results: Results,
    *,
    quick: bool,
    minutes: float | None,
    look: Callable[[], None],
    folder: Path = REPOSITORY,
) -> str:
    """Run them in one process; return "stopped" where that ended before their end."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "tools.faults.recording"]
    command += [f"--results={results.path}", *([] if minutes is None else [f"--minutes={minutes}"])]
    command += ["-m", "not long"] if quick else []
    process = subprocess.Popen([*command, *tests], cwd=folder)
    try:
        watch(process, look)
    finally:
        if process.poll() is None:
            # It has had the terminal's Ctrl-C, too, and takes down what it has started.
            process.wait()
    return "stopped" if process.returncode == 2 else "ended"
