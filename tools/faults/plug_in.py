"""Running the plug-in's own tests of faults: one run of Maven, read while it goes on."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from tools.faults.catalogue import REPOSITORY
from tools.faults.results import Result, Results
from tools.faults.watching import watch

_REPORTS = REPOSITORY / "callback/target/surefire-reports"


def run_plug_in(
    tests: Collection[str], ids: Iterable[str], results: Results, *, quick: bool, look: Callable[[], None]
) -> None:
    """Run tests (``path::Class::method``) that carry one of the ids; ``look`` is called each second."""
    if not tests:
        return
    paths = {test.partition("::")[2]: test for test in tests}
    classes = sorted({name.partition("::")[0] for name in paths})
    command = ["mvn", "-q", "-B", "-ntp", "-f", "callback/pom.xml", "test", f"-Dgroups={'|'.join(ids)}"]
    command += [f"-Dtest={','.join(classes)}", "-Dsurefire.failIfNoSpecifiedTests=false"]
    command += [] if quick else ["-Plong"]
    for old in _REPORTS.glob("TEST-*.xml"):
        old.unlink()
    read: set[Path] = set()

    def take() -> None:
        for path in set(_REPORTS.glob("TEST-*.xml")) - read:
            try:
                found = results_of(path.read_text("utf-8"), paths)
            except ElementTree.ParseError:
                continue  # still being written
            read.add(path)
            for result in found:
                results.add(result)

    def take_and_look() -> None:
        take()
        look()

    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output)
        try:
            watch(process, take_and_look)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        take()
        if process.returncode != 0 and not read:
            output.seek(0)
            print(output.read().decode("utf-8", "replace")[-4000:])
            for test in tests:
                results.add(Result(test, _today(), 0, (f"could not be run: {' '.join(command)}",)))


def results_of(report: str, paths: Mapping[str, str]) -> list[Result]:
    """Return what Surefire's report says of these tests; their parameters stand behind their names.

    Args:
        report: XML.
        paths: each test, by ``Class::method``.
    """
    found: dict[str, Result] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        method = re.match(r"\w*", case.get("name", ""))
        test = paths.get(f"{case.get('classname', '').rpartition('.')[2]}::{method[0] if method else ''}")
        if test is None:
            continue
        failed = case.find("failure") is not None or case.find("error") is not None
        names = (case.get("name", "?"),) if failed else ()
        result = Result(test, _today(), int(not failed), names, float(case.get("time", "0")))
        found[test] = found[test] + result if test in found else result
    return list(found.values())


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
