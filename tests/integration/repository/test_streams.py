"""The streams of `make test` and `make test-long`: what each runs, and what make does with them."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.unit.repository.tree import REPOSITORY, shown, source_files

PATIENCE_SECONDS = 60
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


def test_a_new_test_is_in_the_stream_of_the_nearest_folder() -> None:
    plan = commands("test")
    found = {folder: streams_of(f"tests/{folder}/test_new.py", plan) for folder in (
        "new", "unit/new", "integration/new", "integration/demo", "integration/quotas", "spark/new"
    )}  # fmt: skip
    assert [stream for [stream] in found.values()] == ["unit", "unit", "kafka", "kafka", "load", "spark"]


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


def test_streams_run_side_by_side_but_rates_are_compared_after_hosts_and_roles(tmp_path: Path) -> None:
    # The first that build lets begin wait for each other, so that none of them ends before all have begun.
    begun = "$(grep -c -e +hosts -e +spine -e +roles order)"
    meet = f"for _ in $(seq 300); do [ {begun} = 3 ] && break; sleep 0.1; done"
    script = (
        f"echo +$1 >>order; case $1 in hosts | spine | roles) {meet} ;; esac;"
        " sleep 0.5; [ $1 != lint ] || sleep 1; echo -$1 >>order; echo all is well"
    )
    code, output = played(tmp_path, script)
    assert code == 0, output
    order = (tmp_path / "order").read_text().split()
    assert order.index("-build") < min(order.index(f"+{name}") for name in ("hosts", "unit", "load"))
    assert max(order.index(f"-{name}") for name in ("lint", "hosts", "roles")) < order.index("+load")
    assert max(order.index(f"+{name}") for name in ("hosts", "spine", "roles")) < order.index("+unit")
    at_once = [sum(1 if word[0] == "+" else -1 for word in order[: end + 1]) for end in range(len(order))]
    assert max(at_once) == 4
    assert re.search(r"(?m)^[\d:]{8}  unit       passed after \d:\d\d  all is well$", output), "its last line"


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


def test_while_they_run_their_last_lines_are_shown(tmp_path: Path) -> None:
    script = r"printf '\033[32mtests/unit/test_a.py .... [ 43%%]\033[0m\n\n----\n'; sleep 3"
    _, output = played(tmp_path, script, "unit", STREAM_PROGRESS_SECONDS="0.2")
    line = re.compile(r"(?m)^[\d:]{8}  unit       0:\d\d  tests/unit/test_a\.py \.{4} \[ 43%\]$")
    assert line.search(output), output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_every_process_and_begins_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    tidy = "trap 'sleep 0.2; touch tidied; exit 7' INT; sleep 300 & touch ready; wait"
    (tmp_path / "script").write_text(f"cd {tmp_path}\n[ $1 = lint ] || touch begun\n{tidy}")
    command = [*MAKE, "PLAN=test", f"RECORDS={tmp_path}", "STREAMS=lint unit", "lint-makes="]
    command += [f"PYTEST=sh {tmp_path}/script $@"]
    # SIGINT is ignored below a script's background.
    run = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command] if number == signal.SIGTERM else command
    options = {"cwd": REPOSITORY, "env": ENVIRONMENT, "stdout": subprocess.PIPE, "process_group": 0}
    with subprocess.Popen(run, **options) as making:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        family = psutil.Process(making.pid).children(recursive=True)
        (os.killpg if number == signal.SIGINT else os.kill)(making.pid, number)  # as Ctrl-C does, to all
        output, _ = making.communicate(timeout=PATIENCE_SECONDS)
    assert making.returncode != 0
    assert (tmp_path / "tidied").exists(), output
    assert not (tmp_path / "begun").exists()
    assert len(family) >= 3
    assert psutil.wait_procs(family, timeout=PATIENCE_SECONDS)[1] == []
