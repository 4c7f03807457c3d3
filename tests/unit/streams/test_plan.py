"""How the tests are cut: each runs once, and each stream is something that can be run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY, shown, source_files
from tools.streams.plan import PYTHON, SPARK, chosen, stream_of, streams


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


def test_every_file_of_tests_is_in_one_stream_that_runs_it() -> None:
    run = {stream.name: files_of(stream.command) for stream in streams() if stream.name in PYTHON}
    run["spark"] = {name for name in map(shown, source_files("test_*.py")) if name.startswith(f"{SPARK}/")}
    every = [name for name in map(shown, source_files("test_*.py")) if name.startswith("tests/")]
    assert len(every) > 150
    for name in every:
        assert [stream for stream, files in run.items() if name in files] == [stream_of(name)], name


def test_what_no_stream_names_is_in_that_of_the_nearest_folder() -> None:
    assert stream_of("tests/unit/new/test_new.py") == "unit"
    assert stream_of("tests/new/test_new.py") == "unit"
    assert stream_of("tests/integration/new/test_new.py") == "kafka"
    assert stream_of("tests/integration/demo/test_new.py") == "kafka"
    assert stream_of("tests/integration/quotas/test_new.py") == "load"
    assert stream_of("tests/spark/new/test_new.py") == "spark"


def test_every_path_that_is_named_is_there() -> None:
    for path in (SPARK, *(path for paths in PYTHON.values() for path in paths)):
        assert (REPOSITORY / path).exists(), path


def test_every_stream_comes_after_earlier_ones_only() -> None:
    names = [stream.name for stream in streams()]
    assert len(names) == len(set(names))
    for number, stream in enumerate(streams()):
        assert set(stream.after) <= set(names[:number]), stream.name
        assert 0 < stream.cores <= 2, "two cores are enough"


def test_every_make_target_of_a_stream_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE))
    called = {word for stream in streams() if stream.command[0] == "make" for word in stream.command[1:]}
    assert called
    assert called <= targets


def test_the_guide_says_what_is_in_each_stream() -> None:
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
    for stream in streams():
        assert f"| `{stream.name}` |" in guide


def test_streams_are_chosen_by_name() -> None:
    assert [stream.name for stream in chosen(["unit", "lint"])] == ["lint", "unit"]
    assert {stream.name for stream in chosen(["python"])} == set(PYTHON)
    assert chosen([]) == streams()
    with pytest.raises(KeyError, match="elsewhere: there are build, lint"):
        chosen(["elsewhere"])


def test_arguments_for_pytest_reach_each_call_and_may_leave_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ARGS", raising=False)
    assert {stream.good for stream in streams()} == {(0,)}
    monkeypatch.setenv("PYTEST_ARGS", "-k 'one or other' --durations=5")
    for stream in chosen(["python"]):
        assert stream.command[-3:] == ("-k", "one or other", "--durations=5")
        assert stream.good == (0, 5)
