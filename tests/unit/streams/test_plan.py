"""How the tests are cut: each runs once, and each stream is something that can be run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY, shown, source_files
from tools.streams.__main__ import main
from tools.streams.campaigns import campaigns
from tools.streams.every_change import every_change
from tools.streams.stream import SPARK, Plan

MakePlan = Callable[[], Plan]
each_plan = pytest.mark.parametrize("make_plan", [every_change, campaigns])


def files_of(command: tuple[str, ...]) -> set[str]:
    """The files with tests that a call of pytest looks into."""
    paths = command[command.index("pytest") + 1 : command.index("-m", command.index("pytest"))]
    left_out = [path.removeprefix("--ignore=") for path in paths if path.startswith("--ignore=")]
    return {
        name
        for name in map(shown, source_files("test_*.py"))
        if any(Path(name).is_relative_to(path) for path in paths if not path.startswith("--"))
        and not any(Path(name).is_relative_to(path) for path in left_out)
    }


@each_plan
def test_every_file_of_tests_is_in_one_stream_that_runs_it(make_plan: MakePlan) -> None:
    plan = make_plan()
    run = {stream.name: files_of(stream.command) for stream in plan.streams if stream.name in plan.python}
    run["spark"] = {name for name in map(shown, source_files("test_*.py")) if name.startswith(f"{SPARK}/")}
    every = [name for name in map(shown, source_files("test_*.py")) if name.startswith("tests/")]
    assert len(every) > 150
    for name in every:
        assert [stream for stream, files in run.items() if name in files] == [plan.stream_of(name)], name


def test_each_test_is_in_one_of_the_plans() -> None:
    for plan, marks in ((every_change(), "not long"), (campaigns(), "long")):
        for stream in plan.streams:
            if stream.name in plan.python:
                assert stream.command[stream.command.index("-m", 3) + 1] == marks


def test_what_no_stream_names_is_in_that_of_the_nearest_folder() -> None:
    plan = every_change()
    assert plan.stream_of("tests/unit/new/test_new.py") == "unit"
    assert plan.stream_of("tests/new/test_new.py") == "unit"
    assert plan.stream_of("tests/integration/new/test_new.py") == "kafka"
    assert plan.stream_of("tests/integration/demo/test_new.py") == "kafka"
    assert plan.stream_of("tests/integration/quotas/test_new.py") == "load"
    assert plan.stream_of("tests/spark/new/test_new.py") == "spark"


@each_plan
def test_every_path_that_is_named_is_there(make_plan: MakePlan) -> None:
    for path in (SPARK, *(path for paths in make_plan().python.values() for path in paths)):
        assert (REPOSITORY / path).exists(), path


@each_plan
def test_every_stream_comes_after_earlier_ones_only(make_plan: MakePlan) -> None:
    streams = make_plan().streams
    names = [stream.name for stream in streams]
    assert len(names) == len(set(names))
    assert set(make_plan().python) <= set(names)
    for number, stream in enumerate(streams):
        assert set(stream.after) <= set(names[:number]), stream.name
        assert 0 < stream.cores <= 2, "two cores are enough"


@each_plan
def test_every_make_target_of_a_stream_exists(make_plan: MakePlan) -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z0-9.-]*):", makefile, re.MULTILINE))
    called = {
        word for stream in make_plan().streams if stream.command[0] == "make" for word in stream.command[1:]
    }
    assert called
    assert called <= targets


def test_each_scenario_is_run_by_one_of_the_plans() -> None:
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    long_ones = re.findall(r"^LONG_SCENARIOS = (.*)$", makefile, re.MULTILINE)
    there = {path.parent.name for path in (REPOSITORY / "extensions/molecule").glob("*/molecule.yml")}
    assert {"default", *long_ones[0].split()} == there


@each_plan
def test_the_guide_says_what_is_in_each_stream(make_plan: MakePlan) -> None:
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    for stream in make_plan().streams:
        assert re.search(rf"(?m)^\| .*`{re.escape(stream.name)}`.* \|", guide), stream.name


def test_streams_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    plan = every_change()
    assert [stream.name for stream in plan.chosen(["unit", "lint"])] == ["lint", "unit"]
    assert {stream.name for stream in plan.chosen(["python"])} == set(plan.python)
    assert plan.chosen([]) == plan.streams
    with pytest.raises(SystemExit, match="2"):
        main(["--long", "elsewhere"])
    assert "elsewhere: there are build, load" in capsys.readouterr().err


def test_a_number_of_cores_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAM_CORES", "many")
    with pytest.raises(SystemExit, match="2"):
        main(["lint"])
    assert "STREAM_CORES=many is no number" in capsys.readouterr().err


def test_arguments_for_pytest_reach_each_call_and_may_leave_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ARGS", raising=False)
    assert {stream.good for stream in every_change().streams} == {(0,)}
    monkeypatch.setenv("PYTEST_ARGS", "-k 'one or other' --durations=5")
    for stream in every_change().chosen(["python"]):
        assert stream.command[-3:] == ("-k", "one or other", "--durations=5")
        assert stream.good == (0, 5)
