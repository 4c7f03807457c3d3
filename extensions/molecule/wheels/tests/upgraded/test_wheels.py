"""An agent that was installed and upgraded from wheels is as good as one from the package."""

from __future__ import annotations

from typing import Any

from looks import VERSION, applied, run, starts, wait_for


def test_the_command_is_this_version_s_and_no_package_s(host: Any):
    assert run(host, "kquota --version").strip() == f"kquota {VERSION}"
    installed = run(host, "dpkg-query --show --showformat '${Package} ${Version}\\n'").splitlines()
    assert [line for line in installed if line.startswith("kquota")] == [f"kquota-callback {VERSION}"]
    assert not host.exists("gcc")


def test_the_agent_runs_enforces_and_comes_back_at_boot(host: Any):
    assert host.service("kquota-agent").is_running
    assert host.service("kquota-agent").is_enabled
    seen = wait_for(
        lambda: applied(host), lambda found: (found["mode"], found["state"]) == ("enforce", "OPEN")
    )
    assert seen["lost"] is None


def test_each_version_was_started_once(host: Any):
    """The one before by the rollout, this one by the upgrade; not again by the one that changed nothing."""
    assert starts(host, "kquota-agent.service") == 2
    told = run(host, "journalctl --no-pager --quiet --unit=kquota-agent --output=verbose")
    assert f"MESSAGE=kquota {VERSION} started for broker 1" in told
    assert "KQUOTA_BROKER_ID=1" in told


def test_the_sandbox_leaves_little_to_attack(host: Any):
    run(host, "systemd-analyze security --no-pager --threshold=15 kquota-agent.service")


def test_wheels_of_the_version_before_are_gone(host: Any):
    assert run(host, "ls /var/cache/kquota").split() == [f"wheels-{VERSION}"]
