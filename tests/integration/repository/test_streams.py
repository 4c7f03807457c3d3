"""The streams of `make test` and `make test-long`: what each runs, and what make does with them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY, shown, source_files

OF_THIS_RUN = {"CI", "MAKEFLAGS", "PYTEST_ARGS", "STREAMS"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in OF_THIS_RUN}
MAKE = ["make", "-f", "tools/streams.mk", "PY=python", "AS_ROOT="]


def commands(plan: str) -> dict[str, list[str]]:
    """The commands of each stream."""
    made = [*MAKE, "-n", f"PLAN={plan}"]
    output = subprocess.run(made, cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    lines = [shlex.split(line) for line in output.stdout.splitlines() if line.startswith("tools/stream.sh")]
    return {Path(log).stem: command for _, log, *command in lines}


def streams_of(test: str, plan: dict[str, list[str]]) -> list[str]:
    """The streams that run a file of Python tests."""
    found = ["spark"] if test.startswith("tests/spark/") else []
    for name, command in plan.items():
        above = [word for word in command if Path(test).is_relative_to(word.removeprefix("--ignore="))]
        found += [name] if above and not any(word.startswith("--ignore=") for word in above) else []
    return found


@pytest.mark.parametrize("name", ["test", "test-long"])
def test_each_test_is_in_one_stream_and_each_target_exists(name: str) -> None:
    plan = commands(name)
    tests = [test for test in map(shown, source_files("test_*.py")) if test.startswith("tests/")]
    assert len(tests) > 150
    assert {test: found for test in tests if len(found := streams_of(test, plan)) != 1} == {}
    targets = re.findall(r"^([a-z][a-z0-9.-]*):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    marks = {"test": "not long", "test-long": "long"}[name]
    for stream, command in plan.items():
        assert set(command[1:]) <= set(targets) if command[0] == "make" else marks in command, stream
        paths = [word.removeprefix("--ignore=") for word in command if "tests/" in word]
        assert [path for path in paths if not (REPOSITORY / path).exists()] == []
        assert re.search(rf"(?m)^\| .*`{re.escape(stream)}`.* \|", guide), stream


def test_each_scenario_is_run_by_one_of_the_plans() -> None:
    [long_ones] = re.findall(r"(?m)^LONG_SCENARIOS = (.*)$", (REPOSITORY / "Makefile").read_text("utf-8"))
    there = {path.parent.name for path in (REPOSITORY / "extensions/molecule").glob("*/molecule.yml")}
    assert {"default", *long_ones.split()} == there


def played(folder: Path, script: str, streams: str = "", **environment: str) -> tuple[int, str]:
    """Run a script, whose argument is the stream, in place of the streams' commands."""
    (folder / "script").write_text(f"cd {folder}\n{script}")
    command = [*MAKE, "-j4", "PLAN=test", f"RECORDS={folder}", f"PYTEST=sh {folder}/script $@"]
    command += [*(f"{name}-makes=" for name in commands("test")), f"STREAMS={streams}"]
    made = subprocess.run(
        command, cwd=REPOSITORY, env=ENVIRONMENT | environment, capture_output=True, text=True, check=False
    )
    return made.returncode, made.stdout + made.stderr


def test_a_failure_is_shown_whole_and_the_others_go_on(tmp_path: Path) -> None:
    failing = "echo 'the reason'; echo of $1; [ $1 != unit ] || exit 3"
    code, output = played(tmp_path, failing, "lint load unit")
    assert code != 0
    assert "\n===== unit\nthe reason\nof unit\n===== end of unit\n" in output
    assert output.count("the reason") == 1, "what has passed need not be read"
    summary = output.partition(" min\n")[2].splitlines()[:3]
    assert [line.split()[:3] for line in summary] == [
        ["lint", "passed", "after"], ["load", "passed", "after"], ["unit", "FAILED,", "exit"]
    ]  # fmt: skip
    code, output = played(tmp_path, "echo 'the reason'; exit 5", "unit", CI="true", PYTEST_ARGS="-k nothing")
    assert code == 0, "there was nothing to run"
    assert "===== unit\nthe reason\n=====" in output


def test_what_needs_a_build_that_failed_is_not_run_and_an_unknown_stream_is_refused(tmp_path: Path) -> None:
    code, output = played(tmp_path, "echo $1 >>order; [ $1 != build ]")
    assert code != 0
    assert set((tmp_path / "order").read_text().split()) == {"build", "lint"}
    assert output.count("load       FAILED: not run, because build has failed") == 2
    code, output = played(tmp_path, "echo $1 >>order", "unit elsewhere")
    assert code != 0
    assert "elsewhere: the streams are build lint hosts" in output
