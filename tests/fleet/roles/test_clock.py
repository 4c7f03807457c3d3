"""The comparison of a host's clock with the clock of the control host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.roles.plays import PlayFailed, run_play

LOOK = {"name": "kquota_agent", "tasks_from": "preflight_host"}
FACTS = {"service_mgr": "systemd"}


def compare(folder: Path, **variables: object) -> None:
    """Let the preflight look at this machine, which is the control host as well, so that the clocks agree."""
    (folder / "server.properties").write_text(f"node.id=1\nlog.dirs={folder}\n")
    given = {
        "ansible_facts": FACTS,
        "kquota_agent_install_method": "packages of this test",
        "kquota_agent_kafka": {"bootstrap.servers": "broker-1:9092"},
        "kquota_agent_server_properties": f"{folder}/server.properties",
        "kquota_agent_preflight_log_dirs_on_root": True,
        # The clock of this machine may not be synchronized.
        "kquota_agent_preflight_clock_synchronized": False,
        **variables,
    }
    run_play(folder, [{"ansible.builtin.include_role": LOOK}], given)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_clocks_agree_in_every_time_zone_of_the_control_host(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    compare(tmp_path)


@pytest.mark.parametrize("control", ["1000000000.5", "9000000000.5"])
def test_a_wrong_clock_is_refused_with_every_other_problem(control: str, tmp_path: Path) -> None:
    others = {"kquota_agent_instance": "broker", "kquota_agent_preflight_listener": "OTHER"}
    with pytest.raises(PlayFailed) as failed:
        compare(tmp_path, kquota_agent_control_clock=control, **others)
    said = " ".join(str(failed.value).split())
    assert f"allows 5 s around {control} to {control}, the control host's time: run chrony" in said
    assert "kquota_agent_instance ('broker') must be empty or a name" in said
    assert "the listeners must include OTHER (kquota_agent_preflight_listener)" in said
