"""The line that Java prints for Spark's incubator module is left out, and nothing else."""

from __future__ import annotations

import subprocess
import sys

WARNING = "WARNING: Using incubator modules: jdk.incubator.vector"
# Starts a process as Spark starts Java, and ends before it does.
STARTS = """
import os, subprocess, sys
from kquota_pipeline.java_warnings import without_incubator_warning
with without_incubator_warning():
    subprocess.Popen(["sh", "-c", sys.argv[1]])
os.write(2, b"from Python\\n")  # in one piece: the process writes meanwhile
"""


def test_a_process_goes_on_without_the_warning_of_its_start() -> None:
    script = f"""exec >&2
echo 'NOTE: {WARNING}'; printf '%s\\n' '  two \\ words'; echo '{WARNING}'; printf '\\r1 of 2'
read -r line; echo "$line"; echo '{WARNING}'; printf end"""
    with subprocess.Popen(
        [sys.executable, "-c", STARTS, script], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        before = b""
        while not before.endswith(b"\r1 of 2"):  # comes without an end of line
            before += (read := process.stderr.read(1))
            assert read, before
        process.stdin.write(b"2 of 2\n")
        process.stdin.close()
        lines = (before + process.stderr.read()).decode().replace("from Python\n", "")
    assert lines == f"NOTE: {WARNING}\n  two \\ words\n\r1 of 22 of 2\n{WARNING}\nend"


def test_lines_pass_where_the_warning_does_not_come() -> None:
    script = "exec >&2; echo one; printf two"
    done = subprocess.run([sys.executable, "-c", STARTS, script], capture_output=True, check=True, text=True)
    assert done.stderr.replace("from Python\n", "") == "one\ntwo"
