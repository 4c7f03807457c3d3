"""The module kquota_node reads a node's files, unit and process."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path
from typing import Any, NoReturn

import javaproperties
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plugins.modules import kquota_node
from plugins.modules.kquota_node import (
    InvalidProperties,
    callback_class,
    environment_files,
    kafka_units,
    look,
    look_at_properties,
    look_at_unit,
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
        self.params = {
            "server_properties": str(file),
            "host": "broker-1",
            "optional": False,
            "leaves_out_block": True,
            "offered_properties": None,
            "arrival_file": None,
            "unit": None,
            "own_environment_file": "/own.env",
            **arguments,
        }

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
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
    assert found["properties"] == {"node.id": "7", "kquota.own": "1", "authorizer.class.name": "x.Own"}
    assert "hunter2" not in str(found)


def test_blanks_are_those_of_java_and_half_a_character_is_replaced() -> None:
    found = look_at_properties(
        "log.dirs \\\n /data/1,, \\\n /data/2\\u00a0,/data/1 \\u001f\nnode.id=\\ud83d", True
    )
    assert found["log_dirs"] == ["/data/1", "/data/2\u00a0"]
    assert found["properties"]["node.id"] == "?"


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


@pytest.mark.parametrize("ending", ["", "\n"])
@pytest.mark.parametrize(
    ("text", "continues"), [("a=\\", True), ("a=\\\\", False), ("# a\\", False), ("", False)]
)
def test_a_file_that_ends_in_a_continued_line_is_found(text: str, ending: str, continues: bool) -> None:
    assert look_at_properties(text + ending, True)["ends_in_continuation"] is continues


def test_the_block_is_left_out_but_for_the_class_that_the_node_loads() -> None:
    text = f"node.id=1\nclient.quota.callback.class=x.Own\n{BLOCK}"
    of_role, of_owner = look_at_properties(text, True), look_at_properties(text, False)
    assert of_role["properties"] == {"node.id": "1", "client.quota.callback.class": "x.Own"}
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


def test_the_documentation_names_each_argument_and_each_result(tmp_path: Path) -> None:
    options: dict[str, Any] = yaml.safe_load(kquota_node.DOCUMENTATION)["options"]
    declared = re.findall(r'"([a-z_]+)": \{"type": "([a-z]+)"', inspect.getsource(kquota_node.main))
    assert {name: option["type"] for name, option in options.items()} == dict(declared)
    (tmp_path / "server.properties").touch()
    found = look(Module(tmp_path / "server.properties", "LoadState=loaded\n", unit="kafka.service"))
    returned = yaml.safe_load(kquota_node.RETURN)
    assert set(returned) == set(found)
    assert set(returned["unit"]["contains"]) == set(found["unit"])
