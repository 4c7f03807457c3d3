"""The module kquota_node reads a node's files, unit and process."""

from __future__ import annotations

import inspect
import os
import re
import time
from pathlib import Path
from typing import Any, NoReturn

import javaproperties
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plugins.modules import kquota_node
from plugins.modules.kquota_node import (
    ASK_PYTHON,
    InvalidProperties,
    callback_class,
    environment_files,
    kafka_units,
    log_dir_problems,
    look,
    look_at_properties,
    look_at_unit,
    mount_points,
    parse_properties,
)

PIECES = [*"ab=: \t\f\\\n\r#!ué", "\r\n", "\x85", "\xa0", r"\u0041", r"\ud83d", r"\udca9", r"\u00g0"]
BLOCK = """\
# BEGIN kquota (role kquota_callback); the last of two lines with one key counts
client.quota.callback.class=org.kquota.CallbackWithoutMetrics
kquota.decision.file=/run/kquota/decision.json
# END kquota (role kquota_callback); the last of two lines with one key counts
"""


class Failed(Exception):
    """The module failed; the text is its message."""


class Module:
    """Arguments and a way to run programs, as Ansible gives them to the module."""

    def __init__(self, file: Path, shown: str = "", listed: str = "", **arguments: object) -> None:
        self._shown, self._listed = shown, listed
        self.answers: dict[str, tuple[int, str, str]] = {}
        self.params = {
            "server_properties": str(file),
            "host": "broker-1",
            "optional": False,
            "leaves_out_block": True,
            "offered_properties": None,
            "arrival_file": None,
            "unit": None,
            "own_environment_file": "/own.env",
            "agent": None,
            "plug_in": None,
            **arguments,
        }

    def run_command(self, command: list[str], **_: bool) -> tuple[int, str, str]:
        if command[0] != "systemctl":
            answer = next((self.answers[word] for word in reversed(command) if word in self.answers), None)
            if answer is None:
                raise FileNotFoundError(2, "No such file or directory")
            return answer
        if command[1] != "show":
            return 0, self._listed, ""
        return (0, self._shown, "") if self._shown else (1, "", "Failed to connect to bus\n")

    def fail_json(self, msg: str) -> NoReturn:
        raise Failed(msg)


@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
def test_a_text_is_parsed_as_the_agent_parses_it(text: str) -> None:
    try:
        wanted = dict(javaproperties.loads(text))
    except javaproperties.InvalidUEscapeError:
        with pytest.raises(InvalidProperties, match="four hexadecimal digits"):
            parse_properties(text)
    else:
        assert parse_properties(text) == wanted


def test_only_what_kquota_has_to_know_leaves_the_host() -> None:
    text = "node.id: 7\nssl.key.password=hunter2\nlog.dirs=/a\nkquota.own=1\nauthorizer.class.name x.Own\n"
    found = look_at_properties(text, True)
    assert found["properties"] == {"kquota.own": "1", "authorizer.class.name": "x.Own"}
    assert found["node_id"] == "7"
    assert "hunter2" not in str(found)


def test_blanks_are_those_of_java_and_half_a_character_is_replaced() -> None:
    found = look_at_properties(
        "log.dirs \\\n /data/1,, \\\n /data/2\\u00a0,/data/1 \\u001f\nnode.id=\\ud83d", True
    )
    assert found["log_dirs"] == ["/data/1", "/data/2\u00a0"]
    assert found["node_id"] == "?"


@pytest.mark.parametrize(
    ("text", "dirs", "listeners"),
    [
        ("", ["/tmp/kafka-logs"], ["PLAINTEXT"]),
        ("log.dir=/one\nlisteners SASL\\://a:1,b\\://:2", ["/one"], ["SASL", "B"]),
        ("log.dir=/one\nlog.dirs=/two", ["/two"], ["PLAINTEXT"]),
    ],
)
def test_log_dirs_and_listeners_have_the_defaults_of_kafka(
    text: str, dirs: list[str], listeners: list[str]
) -> None:
    found = look_at_properties(text, True)
    assert (found["log_dirs"], found["listeners"]) == (dirs, listeners)


@pytest.mark.parametrize(
    ("text", "node_id", "rack", "votes", "allows_everyone"),
    [
        ("", "", "", False, False),
        ("broker.id=3\nbroker.rack=a b", "3", "a b", False, False),
        ("broker.id=3\nnode.id=4\nprocess.roles=broker, controller", "4", "", True, False),
        ("node.id=5\nprocess.roles=controller\nallow.everyone.if.no.acl.found=TRUE", "5", "", True, True),
        ("node.id=5\nprocess.roles=broker\nallow.everyone.if.no.acl.found=yes", "5", "", False, False),
    ],
)
def test_the_place_of_the_node_in_the_cluster_is_read(
    text: str, node_id: str, rack: str, votes: bool, allows_everyone: bool
) -> None:
    found = look_at_properties(text, True)
    assert (found["node_id"], found["rack"]) == (node_id, rack)
    assert (found["votes"], found["allows_everyone"]) == (votes, allows_everyone)


@pytest.mark.parametrize("ending", ["", "\n"])
@pytest.mark.parametrize(
    ("text", "continues"), [("a=\\", True), ("a=\\\\", False), ("# a\\", False), ("", False)]
)
def test_a_file_that_ends_in_a_continued_line_is_found(text: str, ending: str, continues: bool) -> None:
    assert look_at_properties(text + ending, True)["ends_in_continuation"] is continues


def test_the_block_is_left_out_but_for_the_class_that_the_node_loads() -> None:
    text = f"node.id=1\nclient.quota.callback.class=x.Own\n{BLOCK}"
    of_role, of_owner = look_at_properties(text, True), look_at_properties(text, False)
    assert of_role["properties"] == {"client.quota.callback.class": "x.Own"}
    assert of_owner["properties"]["kquota.decision.file"] == "/run/kquota/decision.json"
    assert of_role["callback_class"] == of_owner["callback_class"] == "org.kquota.CallbackWithoutMetrics"
    assert callback_class("# client.quota.callback.class=org.kquota.CallbackWithoutMetrics\n") == ""


@pytest.mark.parametrize(
    ("shown", "seconds", "fails"),
    [
        ("ActiveState=failed\nNRestarts=0", None, True),
        ("ActiveState=activating\nNRestarts=7", None, True),
        ("ActiveState=active\nNRestarts=0", 12, False),
        ("ActiveState=active\nNRestarts=1", 12, False),
        ("ActiveState=active\nNRestarts=5", 86400, False),
        ("ActiveState=active\nNRestarts=7", 3, True),
        ("ActiveState=active\nNRestarts=7", None, False),
        ("ActiveState=inactive\nNRestarts=0", None, False),
        ("LoadState=not-found", None, False),
    ],
)
def test_a_unit_that_is_started_again_and_again_fails_to_start(
    shown: str, seconds: int | None, fails: bool
) -> None:
    assert look_at_unit(shown, [], seconds, 0, b"")["fails_to_start"] is fails


def test_the_process_has_the_fingerprint_of_its_start() -> None:
    running = b"A=1\0NOT_KQUOTA_BROKER_CONFIGURATION=aa\0KQUOTA_BROKER_CONFIGURATION=0123456789abcdef\0B=\n"
    found = look_at_unit("LoadState=loaded\nProtectSystem=strict", [], 100, 1000, running)
    assert (found["started"], found["started_with"]) == (900, "0123456789abcdef")
    assert (found["load_state"], found["is_strict"]) == ("loaded", True)
    stopped = look_at_unit("LoadState=loaded\nProtectSystem=no", [], None, 1000, b"")
    assert (stopped["started"], stopped["started_with"], stopped["is_strict"]) == (0, "", False)


def test_files_are_read_in_their_order_and_no_other_variable_leaves_the_host() -> None:
    shown = (
        "Environment=SECRET=hunter2 CLASSPATH=/unit\n"
        "EnvironmentFiles=/a.env (ignore_errors=yes)\nEnvironmentFiles=/b.env (ignore_errors=no)"
    )
    assert environment_files(shown) == ["/a.env", "/b.env"]
    found = look_at_unit(shown, ["CLASSPATH=/a\n", "OTHER=hunter3\n"], None, 0, b"")
    assert found["class_path"] == "/a"
    assert "hunter" not in str(found)


def test_the_units_that_may_be_kafka_are_those_that_there_are() -> None:
    listed = (
        "kafka.service enabled enabled\nkafka@.service disabled enabled\n\n"
        "kafka-exporter.service not-found inactive dead kafka-exporter.service\n"
        "kafka.service loaded active running Kafka\nkafka@one.service loaded active running Kafka one\n"
    )
    assert kafka_units(listed, "other.service") == ["kafka.service", "kafka@one.service"]
    assert kafka_units(listed, "kafka.service") == ["kafka@one.service"]


def test_all_of_a_node_is_found_by_one_look(tmp_path: Path) -> None:
    file, own, theirs = (tmp_path / name for name in ("server.properties", "own.env", "their.env"))
    file.write_text(f"node.id=1\n{BLOCK}")
    own.write_text("CLASSPATH=/own\n")
    theirs.write_text("CLASSPATH=/theirs\n")
    (tmp_path / "offered").write_text("client.quota.callback.class=org.kquota.KquotaCallback\n")
    (tmp_path / "arrival").write_text('{"digest": "d", "since": 5}')
    shown = (
        f"LoadState=loaded\nMainPID={os.getpid()}\nEnvironmentFiles={theirs} (ignore_errors=yes)\n"
        f"EnvironmentFiles={own} (ignore_errors=yes)\nEnvironmentFiles={tmp_path}/none (ignore_errors=yes)\n"
    )
    found = look(
        Module(
            file,
            shown,
            unit="kafka.service",
            own_environment_file=str(own),
            offered_properties=str(tmp_path / "offered"),
            arrival_file=str(tmp_path / "arrival"),
        )
    )
    assert (found["exists"], found["offers"], found["modified"]) == (True, True, int(file.stat().st_mtime))
    assert found["offered_callback_class"] == "org.kquota.KquotaCallback"
    assert found["arrival"] == {"digest": "d", "since": 5}
    assert found["unit"]["class_path"] == "/theirs"
    # This process itself is the one that runs.
    assert found["unit"]["started"] > 0


def test_a_record_that_is_damaged_is_none(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=1\n")
    (tmp_path / "arrival").write_text("[")
    arguments = {"arrival_file": str(tmp_path / "arrival"), "offered_properties": str(tmp_path / "none")}
    found = look(Module(tmp_path / "server.properties", **arguments))
    assert (found["arrival"], found["offers"], found["offered_callback_class"]) == ({}, False, "")
    assert "unit" not in found


def test_a_unit_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.touch()
    module = Module(file, "LoadState=not-found\nMainPID=0\n", "kafka.service enabled\n", unit="x.service")
    unit = look(module)["unit"]
    assert (unit["kafka_units"], unit["started"]) == (["kafka.service"], 0)


def test_a_missing_configuration_is_refused_or_is_one_without_properties(tmp_path: Path) -> None:
    with pytest.raises(
        Failed, match=r"There is no file \S+/absent on broker-1: set kquota_server_properties"
    ):
        look(Module(tmp_path / "absent"))
    found = look(Module(tmp_path / "absent", optional=True))
    assert (found["exists"], found["properties"], found["modified"]) == (False, {}, 0)


@pytest.mark.parametrize(
    ("text", "shown", "sentence"),
    [
        (
            "password=hunter2\na=\\u00g0\n",
            "",
            r"Parsing \S+ of broker-1 failed \(.*u00g0.*\): correct the file",
        ),
        ("node.id=1\n", "", r"systemctl show kafka\.service on broker-1 failed with 1: Failed to connect"),
    ],
)
def test_what_cannot_be_read_is_named_without_a_password(
    text: str, shown: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "server.properties").write_text(text)
    with pytest.raises(Failed, match=sentence) as failed:
        look(Module(tmp_path / "server.properties", shown, unit="kafka.service"))
    assert "hunter2" not in str(failed.value)


def agent(**needs: object) -> dict[str, object]:
    """The agent's needs on a node that has them."""
    return {
        "python": "/usr/bin/python3",
        "from_wheels": True,
        "secret_files": [],
        "listener": "",
        "clock_synchronized": True,
        "control_clock": 5.5,
        "log_dirs_on_root": True,
        **needs,
    }


def looked(
    folder: Path, needs: dict[str, object], text: str, **answers: tuple[int, str, str]
) -> dict[str, Any]:
    """Look for what the agent needs, on a node with this configuration; these are the programs' answers."""
    file = folder / "server.properties"
    file.write_text(f"{text}\n")
    module = Module(file, agent=needs)
    module.answers = {
        ASK_PYTHON: answers.get("python", (0, "3.11\nvenv\n", "")),
        "timedatectl": answers.get("timedatectl", (0, "yes\n", "")),
    }
    return look(module)


def test_a_node_that_has_what_the_agent_needs_has_no_problem(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(mode=0o640)
    needs = agent(listener="internal", secret_files=[str(secret)])
    before = time.time()
    found = looked(tmp_path, needs, f"node.id=7\nlog.dirs={tmp_path}\nlisteners=INTERNAL://:9093")
    assert found["problems"] == []
    assert found["python"] == {"version": "3.11", "has_venv": True}
    assert found["clock"]["control"] == 5.5
    assert before <= found["clock"]["node"] <= time.time()


def test_all_problems_of_the_agent_are_named_at_once(tmp_path: Path) -> None:
    readable, link, kept = (tmp_path / name for name in ("readable", "link", "kept"))
    for file in (readable, kept):
        file.touch(mode=0o640)
    readable.chmod(0o644)
    link.symlink_to(kept)
    needs = agent(listener="OTHER", secret_files=[str(readable), str(link), "/none", str(kept)])
    found = looked(
        tmp_path,
        needs,
        f"node.id=1,URI:x\nlog.dirs={tmp_path}/none,/",
        python=(0, "3.9\n", ""),
        timedatectl=(1, "", "Failed to\nconnect\n"),
    )
    file = tmp_path / "server.properties"
    assert found["problems"] == [
        *(
            f"{path} on broker-1 must be a file that is not world-readable: create it, or run chmod"
            " o-r on it."
            for path in (readable, link, "/none")
        ),
        "/usr/bin/python3 on broker-1 is Python 3.9, but the agent needs 3.11 or later: set"
        " kquota_agent_python to a newer one.",
        f"{file} on broker-1 has node.id '1,URI:x' and the listeners PLAINTEXT: node.id must be a"
        " number, and the listeners must include OTHER (kquota_agent_preflight_listener), through which"
        " the agents connect.",
        "The clock of broker-1 is not synchronized (timedatectl show: Failed to connect): run chrony or"
        " systemd-timesyncd, or set kquota_agent_preflight_clock_synchronized to false if another service"
        " sets the clock.",
        f"log.dirs in {file} on broker-1 names {tmp_path}/none, which cannot be found (No such file or"
        " directory): create it, or mount its volume.",
    ]
    assert found["python"] == {"version": "3.9", "has_venv": False}


@pytest.mark.parametrize(
    ("answer", "from_wheels", "problem"),
    [
        # The package requires the Python that it was made for.
        ((0, "3.9\nvenv\n", ""), False, None),
        ((0, "3.12\n", ""), True, None),
        ((0, "3.9\nvenv\n", ""), True, "is Python 3.9, but the agent needs 3.11 or later"),
        ((1, "", "broken"), False, "cannot be run (broken), but the agent needs 3.11 or later"),
        (None, True, "cannot be run (No such file or directory), but the agent needs 3.11 or later"),
    ],
)
def test_the_agent_s_python_is_refused_with_its_version(
    answer: tuple[int, str, str] | None, from_wheels: bool, problem: str | None, tmp_path: Path
) -> None:
    (tmp_path / "server.properties").write_text(f"node.id=1\nlog.dirs={tmp_path}\n")
    needs = agent(from_wheels=from_wheels, clock_synchronized=False)
    module = Module(tmp_path / "server.properties", agent=needs)
    module.answers = {} if answer is None else {ASK_PYTHON: answer}
    found = look(module)
    sentence = f"/usr/bin/python3 on broker-1 {problem}: set kquota_agent_python to a newer one."
    assert found["problems"] == ([] if problem is None else [sentence])
    assert found["python"]["version"] == ("" if answer is None or answer[0] else answer[1].split()[0])


def test_log_dirs_on_the_root_file_system_are_named_unless_they_are_allowed(tmp_path: Path) -> None:
    mounted, link, on_root = tmp_path / "a volume" / "log", tmp_path / "link", tmp_path / "a volume of none"
    mounted.mkdir(parents=True)
    on_root.mkdir()
    link.symlink_to(mounted)
    written = str(mounted.parent).replace(" ", "\\040")
    points = mount_points(f"21 1 8:1 / / rw - ext4 /dev/a rw\n22 21 8:2 / {written} rw - ext4 /dev/b rw\n")
    assert points == ["/", str(mounted.parent)]
    given = [str(mounted), str(link), str(on_root), "/"]
    assert log_dir_problems(given, points, "file", "broker-1", True) == []
    assert log_dir_problems(given, points, "file", "broker-1", False) == [
        f"The log dir {on_root}, / on broker-1 is on the root file system: mount its volume, or set"
        " kquota_agent_preflight_log_dirs_on_root to true to apply the limits to the root file system."
    ]


def with_jars(folder: Path, *names: str) -> Module:
    """A node with these jars, as Apache's packages or Confluent's have them."""
    (folder / "server.properties").write_text("node.id=1\n")
    libs = [folder / "libs", folder / "share/java/kafka"]
    for name in names:
        place = libs["4.1.2" in name]
        place.mkdir(parents=True, exist_ok=True)
        (place / name).touch()
    needs = {"kafka_home": str(folder), "kafka_libs": [*map(str, libs)], "java": "java", "as_broker": ["as"]}
    module = Module(folder / "server.properties", plug_in=needs)
    module.answers = {"-version": (0, "", 'openjdk version "17.0.1" 2021-10-19\n')}
    return module


@pytest.mark.parametrize("version", ["4.0.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0"])
def test_supported_versions_are_accepted_by_the_names_of_their_jars(version: str, tmp_path: Path) -> None:
    found = look(with_jars(tmp_path, f"kafka-clients-{version}.jar", "other-3.0.0.jar"))
    assert (found["kafka_version"], found["problems"]) == (version, [])


@pytest.mark.parametrize(
    ("jars", "named", "version"),
    [
        (("kafka-clients-3.9.2.jar",), "kafka-clients-3.9.2.jar", "3.9.2"),
        (("kafka-clients-4.5.0.jar",), "kafka-clients-4.5.0.jar", "4.5.0"),
        (("kafka-clients-10.0.0.jar",), "kafka-clients-10.0.0.jar", "10.0.0"),
        # No jar explains it.
        (("kafka-clients-8.1.0-ccs.jar",), "kafka-clients-8.1.0-ccs.jar", "8.1.0"),
        (("other.jar",), "no kafka-clients-*.jar in {0}/libs or {0}/share/java/kafka", "0"),
    ],
)
def test_other_versions_are_refused_with_what_is_supported(
    jars: tuple[str, ...], named: str, version: str, tmp_path: Path
) -> None:
    assert look(with_jars(tmp_path, *jars))["problems"] == [
        f"Kafka in {tmp_path} on broker-1 ({named.format(tmp_path)}) is {version}, but the plug-in supports"
        " 4.0 to 4.4: set kquota_kafka_home to the directory with its bin and libs, or upgrade Kafka."
    ]


def test_a_vendor_s_jars_are_asked_for_their_version_of_kafka(tmp_path: Path) -> None:
    module = with_jars(tmp_path, "kafka-clients-8.0.0-ccs.jar")
    module.answers["version-mapping"] = (
        0,
        "metadata.version=25 (4.0-IV3)\nmetadata.version=1 (3.0-IV1)\n",
        "",
    )
    found = look(module)
    assert (found["kafka_version"], found["problems"]) == ("4.0", [])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((0, "", 'openjdk version "21" 2023-09-19\n'), None),
        ((0, "", 'Picked up JAVA_TOOL_OPTIONS: -Da\njava version "17.0.1"\n'), None),
        ((0, "", 'openjdk version "11.0.2"\nmore\n'), 'is openjdk version "11.0.2"'),
        ((0, "", 'java version "1.8.0_392"\n'), 'is java version "1.8.0_392"'),
        ((127, "", "sh: java: not found\n"), "cannot be run (sh: java: not found)"),
        (None, "cannot be run (No such file or directory)"),
    ],
)
def test_another_java_is_refused_with_its_version(
    answer: tuple[int, str, str] | None, problem: str | None, tmp_path: Path
) -> None:
    module = with_jars(tmp_path, "kafka-clients-4.4.0.jar")
    module.answers = {} if answer is None else {"-version": answer}
    sentence = (
        f"java on broker-1 {problem}, but the plug-in needs Java 17 or later: set kquota_callback_java to a"
        " newer one."
    )
    assert look(module)["problems"] == ([] if problem is None else [sentence])


def test_the_documentation_names_each_argument_and_each_result(tmp_path: Path) -> None:
    options: dict[str, Any] = yaml.safe_load(kquota_node.DOCUMENTATION)["options"]
    declared = re.findall(r'"([a-z_]+)": \{"type": "([a-z]+)"', inspect.getsource(kquota_node.main))
    assert {name: option["type"] for name, option in options.items()} == dict(declared)
    for name, needs in (("agent", kquota_node.AGENT), ("plug_in", kquota_node.PLUG_IN)):
        documented = {
            key: {part: value for part, value in option.items() if part != "description"}
            for key, option in options[name]["suboptions"].items()
        }
        assert documented == needs
    module = with_jars(tmp_path, "kafka-clients-4.4.0.jar")
    module = Module(
        tmp_path / "server.properties",
        "LoadState=loaded\n",
        unit="kafka.service",
        agent=agent(),
        plug_in=module.params["plug_in"],
    )
    found = look(module)
    returned = yaml.safe_load(kquota_node.RETURN)
    assert set(returned) == set(found)
    for name in ("unit", "python", "clock"):
        assert set(returned[name]["contains"]) == set(found[name])
