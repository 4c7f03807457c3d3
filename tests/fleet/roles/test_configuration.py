"""Settings of the control host's Ansible with which the plays do not run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

(FIRST, *_) = yaml.safe_load((REPOSITORY / "playbooks/reachable.yml").read_text("utf-8"))
(CHECK,) = (task for task in FIRST["tasks"] if task["name"] == "Check the configuration of Ansible")


def test_values_that_look_like_something_else_are_not_read_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(json.dumps(CHECK).replace("ansible_version.full", "'2.18.6'"))
    # Its default is true from 2.19 on, and false before.
    monkeypatch.setenv("ANSIBLE_JINJA2_NATIVE", "false")
    run_play(tmp_path, [before], {})
    monkeypatch.setenv("ANSIBLE_JINJA2_NATIVE", "true")
    # There, the setting changes nothing.
    run_play(tmp_path, [CHECK], {})
    with pytest.raises(PlayFailed, match=r"jinja2_native\s+\(ANSIBLE_JINJA2_NATIVE\)\s+is\s+true"):
        run_play(tmp_path, [before], {})
