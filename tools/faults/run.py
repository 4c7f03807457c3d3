"""Running the tests of faults, and what they measured."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tools.faults.catalogue import REPOSITORY, Fault


@dataclass(slots=True)
class Outcome:
    """What the tests of one fault showed; seconds are the longest of any, None where none measured them."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    safe_seconds: float | None = None
    recovery_seconds: float | None = None
    seconds: float = 0.0

    @property
    def seen(self) -> str:
        """In words."""
        if self.failed:
            return f"FAILED: {', '.join(self.failed)}"
        return f"as expected ({self.passed} tests)" if self.passed else "no test ran"


def run(faults: Sequence[Fault], *, java: bool, selection: str = "") -> dict[str, Outcome]:
    """Inject the faults; ``selection`` is an expression of marks for pytest (``not long``)."""
    outcomes = {fault.id: Outcome() for fault in faults}
    # in the order of their files: some share a cluster and follow each other
    marks = {mark for fault in faults for mark in fault.python_marks}
    places = sorted((mark.path, mark.line, f"{mark.path}::{mark.test}") for mark in marks)
    nodes = list(dict.fromkeys(node for _, _, node in places))
    with tempfile.TemporaryDirectory(prefix="kquota-faults-") as directory:
        report = Path(directory) / "report.xml"
        if nodes:
            command = [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "--tb=short",
                "-o",
                "junit_family=xunit1",
                f"--junitxml={report}",
            ]
            command += ["-m", selection] if selection else []
            subprocess.run([*command, *nodes], cwd=REPOSITORY, check=False)
            take_report(report.read_text("utf-8") if report.exists() else "", faults, outcomes)
    in_java = [fault for fault in faults if fault.has_java_tests]
    if java and in_java:
        _run_java(in_java, outcomes, selection)
    return outcomes


def take_report(text: str, faults: Iterable[Fault], outcomes: dict[str, Outcome]) -> None:
    """Add what pytest's report says to the outcomes."""
    if not text:
        for fault in faults:
            outcomes[fault.id].failed.append("the tests could not be run")
        return
    ids_of: dict[tuple[str, str], list[str]] = {}
    for fault in faults:
        for mark in fault.tests:
            ids_of.setdefault((mark.path, mark.test.rpartition("::")[2]), []).append(fault.id)
    for case in ElementTree.fromstring(text).iter("testcase"):
        name = case.get("name", "").partition("[")[0]
        path = case.get("file", "")
        for id_ in ids_of.get((path, name), []):
            _add(outcomes[id_], case)


def take_java_reports(texts: Iterable[str], faults: Iterable[Fault], outcomes: dict[str, Outcome]) -> None:
    """Add what Surefire's reports say to the outcomes; a class or method may have parameters behind it."""
    ids_of: dict[str, list[str]] = {}
    for fault in faults:
        for mark in fault.tests:
            if mark.path.endswith(".java"):
                ids_of.setdefault(mark.test, []).append(fault.id)
    for text in texts:
        for case in ElementTree.fromstring(text).iter("testcase"):
            method = re.match(r"\w*", case.get("name", ""))
            test = f"{case.get('classname', '').rpartition('.')[2]}::{method[0] if method else ''}"
            for id_ in ids_of.get(test, []):
                _add(outcomes[id_], case)


def _add(outcome: Outcome, case: ElementTree.Element) -> None:
    outcome.seconds += float(case.get("time", "0"))
    if case.find("failure") is not None or case.find("error") is not None:
        outcome.failed.append(case.get("name", "?"))
    else:
        outcome.passed += 1
    for entry in case.iter("property"):
        name, value = entry.get("name"), entry.get("value", "nan")
        if name == "safe_seconds":
            outcome.safe_seconds = max(float(value), outcome.safe_seconds or 0.0)
        elif name == "recovery_seconds":
            outcome.recovery_seconds = max(float(value), outcome.recovery_seconds or 0.0)


def _run_java(faults: Sequence[Fault], outcomes: dict[str, Outcome], selection: str) -> None:
    groups = "|".join(fault.id for fault in faults)
    command = ["mvn", "-q", "-B", "-ntp", "-f", "callback/pom.xml", "test", f"-Dgroups={groups}"]
    command += [] if selection else ["-Plong"]
    reports = REPOSITORY / "callback/target/surefire-reports"
    for old in reports.glob("TEST-*.xml"):
        old.unlink()
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    texts = [path.read_text("utf-8") for path in reports.glob("TEST-*.xml")]
    take_java_reports(texts, faults, outcomes)
    if done.returncode != 0 and not any(outcome.failed for outcome in outcomes.values()):
        for fault in faults:
            outcomes[fault.id].failed.append(f"the plug-in's own tests ({' '.join(command)})")
