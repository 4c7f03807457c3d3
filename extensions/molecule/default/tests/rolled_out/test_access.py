"""The agent reads a broker's files by ACLs, and not what the broker's group can read."""

from __future__ import annotations

from typing import Any

from host_state import decision, run, wait_for

LOG_DIRS = ("/data/1/kafka", "/data/2/kafka", "/data/metadata/kafka")
STATUS = "systemctl show --property=StatusText kquota-agent"
PROPERTIES = "/etc/kafka/server.properties"
REPLACE = f"install -m 640 -o root -g kafka {PROPERTIES} /etc/kafka/new && mv /etc/kafka/new {PROPERTIES}"


def can_read(host: Any, path: str) -> bool:
    """Whether the agent's user, in its own groups, can read the path."""
    with host.sudo():
        return bool(host.run("runuser --user kquota -- test -r %s", path).rc == 0)


def test_the_agent_reads_the_configuration_and_the_names_in_log_dirs_alone(host: Any):
    pid = run(host, "systemctl show --property=MainPID --value kquota-agent").strip()
    groups = run(host, "sed -n 's/^Groups://p' /proc/%s/status", pid).split()
    assert run(host, "getent group kafka").split(":")[2] not in groups
    assert all(can_read(host, path) for path in (PROPERTIES, *LOG_DIRS))
    name = host.check_output("hostname")
    closed = [f"/etc/kafka/tls/{name}.pem", "/etc/kafka/admin.properties"]
    closed += [f"{path}/meta.properties" for path in LOG_DIRS]
    assert [path for path in closed if can_read(host, path)] == []
    run(host, "test -e %s -a -e %s", *closed[:2])


def test_a_file_that_was_replaced_is_read_after_the_next_start_or_reload(host: Any):
    for action in ("reload", "restart"):
        run(host, REPLACE)
        assert not can_read(host, PROPERTIES)
        run(host, f"systemctl {action} kquota-agent")
        assert can_read(host, PROPERTIES)
        wait_for(lambda: run(host, STATUS), lambda text: "OPEN" in text)
        assert decision(host)["undetermined"] == []
