"""The comparison of a host's clock with the control host's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PlayFailed, run_tasks

COMPARE = (("kquota_agent", "preflight_clock"),)
# Nobody keeps the time of this machine, perhaps; it is one machine, so that its clock agrees with itself.
VARIABLES = {"kquota_agent_preflight_clock_synchronized": False}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_clocks_agree_whatever_the_control_host_s_time_zone(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert run_tasks(tmp_path, COMPARE, VARIABLES) == 0


def test_a_clock_that_is_off_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    date = tmp_path / "date"
    date.write_text("#!/bin/sh\necho 1000000000.5\n")
    date.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(PlayFailed, match=r"said\s+1000000000\.5\s+when"):
        run_tasks(tmp_path, COMPARE, VARIABLES)
