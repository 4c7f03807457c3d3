"""The process that is asked which topics grow: its answer, its failures, and that it is given up."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kquota.disks import topic_growth
from kquota.disks.topic_growth import TopicGrowth, TopicGrowthQuestion
from tests.integration.waiting import eventually


def program(tmp_path: Path, text: str) -> str:
    """An executable to be asked instead of the interpreter."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def answered(question: TopicGrowthQuestion) -> TopicGrowth:
    answer = eventually(question.answer, "there is an answer")
    assert isinstance(answer, TopicGrowth)
    return answer


def test_a_log_dir_that_is_not_there_is_the_problem(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with TopicGrowthQuestion([str(missing)]) as question:
        assert answered(question) == TopicGrowth(problem=f"{missing}: No such file or directory")


@pytest.mark.parametrize(
    "said",
    ["nothing", '{"grown_bytes": 7, "problem": null}', '{"problem": null}', "[]", '{"grown_bytes": {}}'],
)
def test_a_process_that_makes_no_sense_is_the_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"echo '{said}'; exit 3"))
    with TopicGrowthQuestion(["/data"]) as question:
        assert answered(question) == TopicGrowth(problem="the question ended with 3")


def test_the_most_are_listed_first_and_only_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps({"grown_bytes": {f"t{n}": n for n in range(9)}, "problem": None})
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"echo '{said}'"))
    with TopicGrowthQuestion([]) as question:
        assert answered(question) == TopicGrowth((("t8", 8), ("t7", 7), ("t6", 6), ("t5", 5), ("t4", 4)))


def test_a_process_that_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"echo $$ > {pid}; exec sleep 600"))
    monkeypatch.setattr(topic_growth, "_ANSWER_SECONDS", 3)
    with TopicGrowthQuestion(["/data"]) as question:
        assert question.answer() is None, "there is time left"
        assert answered(question) == TopicGrowth(problem="the disk does not answer")
    assert not Path(f"/proc/{pid.read_text().strip()}").exists(), "the process was ended"
