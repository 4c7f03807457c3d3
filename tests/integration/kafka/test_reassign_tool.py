"""How Kafka's tool is run: what it may read, as whom it runs, and what is left."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kquota.kafka.reassign_tool import ReassignTool, ToolFailed, find_tool

NOBODY = (65534, 65534)
# Not a stand-in for Kafka: it shows what any tool in its place can see.
_SHOWS = """#!/bin/sh
echo "user $(id -u) group $(id -g) groups $(id -G)"
echo "heap $KAFKA_HEAP_OPTS options ${KAFKA_OPTS-none}"
shift 2
stat -L -c '%a %u' "$2"
cat "$2"
shift 2
echo "$@"
while [ $# -gt 1 ]; do shift; done
cat "$1" 2>/dev/null
exit "${CODE:-0}"
"""


def tool_in(home: Path, script: str = _SHOWS) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "libs").mkdir()
    path = home / "bin" / "kafka-reassign-partitions.sh"
    path.write_text(script, "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for one in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        one.chmod(0o755)
    return tmp_path / "kafka"


def run(tool: ReassignTool, *arguments: str, file: dict[str, object] | None = None) -> list[str]:
    return tool._run(*arguments, file=file).splitlines()


def test_it_gets_its_properties_through_memory_that_only_it_can_open(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_OPTS", "-javaagent:/opt/exporter.jar=7071")
    tool = ReassignTool(tool_in(home), "a:9092", {"ssl.keystore.key": "secret"}, NOBODY)
    *before, named, content = run(tool, "--execute", file={"version": 1})
    assert before == [
        f"user {os.getuid()} group {os.getgid()} groups {os.getgid()}",
        "heap -Xmx256m options none",
        "600 0",
        "ssl.keystore.key=secret",
    ]
    assert re.fullmatch(r"--execute --reassignment-json-file /proc/self/fd/\d+", named)
    assert content == '{"version": 1}'


@pytest.mark.parametrize("writable", ["bin/kafka-reassign-partitions.sh", "libs", "libs/kafka.jar", "."])
def test_root_runs_it_as_the_broker_s_user_if_others_can_write_what_it_runs(
    home: Path, writable: str
) -> None:
    tool = ReassignTool(tool_in(home), "a:9092", {"a": "b"}, NOBODY)
    (home / "libs" / "kafka.jar").touch()
    assert run(tool, "--list")[0].startswith("user 0 ")
    os.chown(home / writable, *NOBODY)
    assert run(tool, "--list") == [
        "user 65534 group 65534 groups 65534",
        "heap -Xmx256m options none",
        "600 65534",
        "a=b",
        "--list",
    ]


def test_a_failure_has_the_tool_s_own_words(home: Path) -> None:
    lines = (
        "Current partition replica assignment",
        "Error: Failed to alter dir for t-1-1",
        "org.apache.kafka.tools.AdminCommandFailedException: Failed to alter dir for t-1-1",
        "Caused by: java.util.concurrent.ExecutionException: org.x.LogDirNotFoundException: It is gone.",
        "Caused by: org.x.LogDirNotFoundException: It is gone.",
    )
    script = "#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines) + "exit 1\n"
    tool = ReassignTool(tool_in(home, script), "a:9092", {}, NOBODY)
    with pytest.raises(ToolFailed, match=r"sh failed: Failed to alter dir for t-1-1: It is gone\.$"):
        tool.execute({})


def test_it_is_found_under_both_of_its_names(home: Path) -> None:
    assert find_tool(home) is None
    path = tool_in(home)
    assert find_tool(home) == path
    other = path.rename(path.with_suffix(""))
    assert find_tool(home) == other


def test_partitions_that_are_being_reassigned_are_read_from_its_list(home: Path) -> None:
    lines = "Current partition reassignments:\n\nvisits-0: replicas: 2,1,3. adding: 3. removing: 1.\n"
    lines += "a.b-12: replicas: 1.\n"
    tool = ReassignTool(tool_in(home, f"#!/bin/sh\nprintf '{lines}'\n"), "a:9092", {}, NOBODY)
    assert tool.reassigned() == {"visits-0", "a.b-12"}
