"""An agent that was installed and upgraded from wheels works like one from the package."""

from __future__ import annotations

from typing import Any

from host_state import VERSION, applied, run, starts, wait_for


def test_the_command_is_this_version_s_and_no_package_s(host: Any):
    assert run(host, "kquota --version").strip() == f"kquota {VERSION}"
    installed = run(host, "dpkg-query --show --showformat '${Package} ${Version}\\n'").splitlines()
    assert [line for line in installed if line.startswith("kquota")] == [f"kquota-callback {VERSION}"]
    assert not host.exists("gcc")


def test_the_agent_runs_enforces_and_starts_at_boot(host: Any):
    assert host.service("kquota-agent").is_running
    assert host.service("kquota-agent").is_enabled
    seen = wait_for(
        lambda: applied(host), lambda found: (found["mode"], found["state"]) == ("enforce", "OPEN")
    )
    assert seen["lost"] is None


def test_each_version_was_started_once(host: Any):
    """The previous one by the rollout, this one by the first upgrade; the second changed nothing."""
    assert starts(host, "kquota-agent.service") == 2
    journal = run(host, "journalctl --no-pager --quiet --unit=kquota-agent --output=verbose")
    assert f"MESSAGE=kquota {VERSION} started for broker 1" in journal
    assert "KQUOTA_BROKER_ID=1" in journal


def test_the_sandbox_leaves_little_to_attack(host: Any):
    # Two of the points are for system calls with which a process can give way to others, and nothing else.
    # Two are for the command line of the broker, which any user of the host may read.
    run(host, "systemd-analyze security --no-pager --threshold=19 kquota-agent.service")


def test_wheels_of_the_previous_version_are_removed(host: Any):
    assert run(host, "ls /var/cache/kquota").split() == [f"wheels-{VERSION}"]
