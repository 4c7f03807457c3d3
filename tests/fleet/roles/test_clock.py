"""The comparison of a host's clock with the clock of the control host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PlayFailed, run_tasks

COMPARE = (("kquota_agent", "preflight_clock"),)
# The clock of this machine may not be synchronized. The host is the control host, so that the clocks agree.
VARIABLES = {"kquota_agent_preflight_clock_synchronized": False}


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_clocks_agree_in_every_time_zone_of_the_control_host(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert run_tasks(tmp_path, COMPARE, VARIABLES) == 0


def test_a_wrong_clock_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    date = tmp_path / "date"
    date.write_text("#!/bin/sh\necho 1000000000.5\n")
    date.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(PlayFailed, match=r"clock\s+of\s+localhost\s[^$]*1000000000\.5"):
        run_tasks(tmp_path, COMPARE, VARIABLES)
