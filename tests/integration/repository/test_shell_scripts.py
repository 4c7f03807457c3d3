"""Every shell script parses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.repository.tree import shown, source_files


def shell_scripts() -> list[Path]:
    candidates = source_files("*.sh", "run", "post*", "pre*")
    return [path for path in candidates if path.read_bytes().startswith((b"#!/bin/sh", b"#!/usr/bin/env sh"))]


@pytest.mark.parametrize("script", shell_scripts(), ids=shown)
def test_a_shell_script_parses(script):
    result = subprocess.run(["/bin/sh", "-n", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_shell_scripts_are_found():
    assert {".ci/run", "tools/lock.sh"} <= {shown(script) for script in shell_scripts()}
