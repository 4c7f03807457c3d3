"""The targets of the Makefile: nothing that they run is missing."""

from __future__ import annotations

import os
import re
import subprocess

from tests.unit.repository.tree import REPOSITORY

OURS = "bench|callback|conformance|docs|packaging|requirements|spark|testbed|tests|tools"
OF_THIS_RUN = {"MAKEFLAGS", "MAKEOVERRIDES", "STREAMS", "SCENARIO", "SUITES"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in OF_THIS_RUN}


def made(*arguments: str) -> str:
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(
        command, cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout


def test_every_program_file_and_folder_that_a_target_names_exists() -> None:
    text = (REPOSITORY / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-z][a-z0-9.-]*):", text, re.MULTILINE)
    recipes = made("--dry-run", "--always-make", *targets)
    programs = {name.replace(".", "/") for name in re.findall(rf"-m ((?:{OURS})[\w.]*)", recipes)}
    assert {"tools/evidence", "testbed/demo", "bench/scale"} <= programs
    starts = {name: (f"{name}.py", f"{name}/__main__.py") for name in programs}
    assert [
        name for name, files in starts.items() if not any((REPOSITORY / one).exists() for one in files)
    ] == []
    named = set(re.findall(rf"(?<![\w./-])((?:{OURS})/[\w./-]+)", recipes))
    assert "tools/release/release.sh" in named
    there = [path for path in named if not path.startswith("callback/target")]  # Maven makes that
    assert [path for path in there if not (REPOSITORY / path).exists()] == []


def test_help_lists_what_people_run() -> None:
    listed = made("help")
    assert re.findall(r"(?m)^(demo|test|release) ", listed) == ["demo", "test", "release"]
