"""The campaign's plug-in, on a stage with five mutants and their tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
TESTS = """
import os, pathlib, signal, subprocess
UNDER_TEST = os.environ.get("MUTANT_UNDER_TEST", "")
def on(): return os.environ["MUTANT_UNDER_TEST"].rpartition(".")[2]
def test_slow(tmp_path): assert on() != "x_f__mutmut_1", "it has to be dead by now"
def test_quick(tmp_path):
    pathlib.Path("order").open("a").write(f"{on()} quick\\\\n")
    assert on() != "x_f__mutmut_1"
def test_busy():
    had_no_time = pathlib.Path("tried-before")
    tried_before = had_no_time.exists()
    had_no_time.touch()
    assert tried_before
def test_too_long():
    subprocess.Popen(["sh", "-c", "sleep 2; touch left-behind"])
    os.kill(os.getpid(), signal.SIGXCPU)
"""
KEYS = ["x_f__mutmut_1", "x_f__mutmut_2", "x_g__mutmut_1", "x_h__mutmut_1", "x_i__mutmut_1"]
STATS = {
    "duration_by_test": {"test_it.py::test_slow": 9.0, "test_it.py::test_quick": 0.1},
    "tests_by_mangled_function_name": {
        "kquota.policy.a.x_f": ["test_it.py::test_slow", "test_it.py::test_quick"],
        "kquota.policy.a.x_g": ["test_it.py::test_too_long"],
        "kquota.policy.a.x_h": ["test_it.py::test_that_is_gone"],
        "kquota.policy.a.x_i": ["test_it.py::test_busy"],
    },
}


def test_each_mutant_gets_what_its_tests_came_to(tmp_path: Path) -> None:
    meta = tmp_path / "src/kquota/policy/a.py.meta"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"exit_code_by_key": {f"kquota.policy.a.{key}": None for key in KEYS}}))
    (tmp_path / "mutmut-stats.json").write_text(json.dumps(STATS))
    (tmp_path / "test_it.py").write_text(TESTS.replace("\\\\n", "\\n"))
    (tmp_path / "names").write_text("\n".join(f"kquota.policy.a.{key}" for key in KEYS))
    campaign = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "-p", "tools.mutants.campaign", "test_it.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "MUTANTS_TO_TRY": "names", "MUTANTS_CHILDREN": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert campaign.returncode == 0, campaign.stdout + campaign.stderr
    assert list(json.loads(meta.read_text())["exit_code_by_key"].values()) == [1, 0, -24, 33, 0]
    tried = (tmp_path / "order").read_text().splitlines()
    twice = ["x_f__mutmut_1 quick"] * 2  # a single failure may be for want of time
    assert sorted(tried) == [*twice, "x_f__mutmut_2 quick"]
    time.sleep(2.5)
    assert not (tmp_path / "left-behind").exists(), "what a test has left behind is ended"
