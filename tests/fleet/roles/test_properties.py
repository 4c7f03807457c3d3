"""How the role changes a broker's server.properties."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import javaproperties
import pytest

from kquota.disks.server_properties import read_broker_properties
from plugins.modules.kquota_node import look_at_unit
from tests.fleet.roles.plays import PlayFailed, run_play, run_tasks

Variables = Callable[..., dict[str, object]]
SET = (("kquota_callback", "facts_properties"), ("kquota_callback", "configure_properties"))
UNSET = (("kquota_callback", "remove_properties"),)
PARTS = [
    {"ansible.builtin.include_role": {"name": role, "tasks_from": part, "public": True}} for role, part in SET
]
ORIGINAL = """\
# Ours since 2019
process.roles = broker,controller
node.id: 7
log.dirs=/data/1,\\
   /data/2
super.users=User:CN=admin
!authorizer.class.name=org.example.Nothing
authorizer.class.name=org.example.Authorizer
ssl.key.password=hunter2


"""

OWN = "org.example.Authorizer"
# By name: the spelling of the authorizer in a file, and the authorizer that the fence wraps.
AUTHORIZERS = {
    "equals": (f"authorizer.class.name={OWN}\n", OWN),
    "colon": (f"authorizer.class.name : {OWN}\n", OWN),
    "space": (f"authorizer.class.name {OWN}\n", OWN),
    "tab": (f"authorizer.class.name\t{OWN}  \r\n", OWN),
    "form-feed": (f"\fauthorizer.class.name\f{OWN}\n", OWN),
    "continued-value": ("authorizer.class.name=org.example.\\\n    Authorizer\n", OWN),
    "continued-key": (f"authorizer.\\\r\n  class.name {OWN}\n", OWN),
    "escaped-key": (f"authorizer\\u002eclass\\.name={OWN}\n", OWN),
    "last-line": (f"authorizer.class.name=org.example.Before\nauthorizer.class.name {OWN}", OWN),
    "latin-1": (f"# B\xe9b\xe9\nauthorizer.class.name {OWN}\n", OWN),
    "absent": ("#authorizer.class.name=org.example.Comment\n", "none"),
    "within-a-value": (f"listeners=\\\n authorizer.class.name={OWN}\n", "none"),
    "empty": ("authorizer.class.name=\n", "none"),
}


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(ORIGINAL)
    file.chmod(0o640)
    return file


@pytest.fixture
def variables(plug_in: dict[str, object]) -> Variables:
    return lambda server_properties, **others: {
        **plug_in,
        "kquota_callback_server_properties": str(server_properties),
        "kquota_callback_agent_principals": [r"User:CN=agent\, first,O=x"],
        "kquota_callback_broker_principals": ["User:CN=broker,O=x"],
        "kquota_fallback_action": "open",
        "kquota_usage_topic": "usage",
        **others,
    }


def test_only_a_block_at_the_end_changes_and_removing_it_restores_every_byte(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    given = variables(server_properties)
    assert run_tasks(tmp_path, SET, given) == 1
    text = server_properties.read_text("utf-8")
    assert text.startswith(ORIGINAL)
    assert server_properties.stat().st_mode & 0o777 == 0o640
    found = javaproperties.loads(text)
    assert found["client.quota.callback.class"] == "org.kquota.KquotaCallback"
    assert found["kquota.exempt.principals"] == r"User:CN=agent\, first,O=x;User:CN=broker,O=x"
    assert found["kquota.agent.principals"] == r"User:CN=agent\, first,O=x"
    assert found["kquota.decision.lost.action"] == "open"
    assert found["authorizer.class.name"] == "org.kquota.KquotaAuthorizer"
    assert found["kquota.own.topics"] == "usage,__kquota_history,__kquota_orders"
    assert found["kquota.fence.authorizer.class"] == "org.example.Authorizer"
    assert [str(path) for path in read_broker_properties(server_properties).log_dirs] == [
        "/data/1",
        "/data/2",
    ]

    assert run_tasks(tmp_path, SET, given) == 0
    assert server_properties.read_text("utf-8") == text

    without_fence = variables(server_properties, kquota_fence=False)
    assert run_tasks(tmp_path, SET, without_fence) == 1
    assert javaproperties.loads(server_properties.read_text("utf-8"))["authorizer.class.name"] == (
        "org.example.Authorizer"
    )

    assert run_tasks(tmp_path, UNSET, given) == 1
    assert server_properties.read_text("utf-8") == ORIGINAL
    assert run_tasks(tmp_path, UNSET, given) == 0


def test_an_agent_with_the_principal_of_brokers_or_people_has_no_quota(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    shared = ["User:broker", "User:admin", "User:operator"]
    given = variables(
        server_properties,
        kquota_callback_agent_principals=[*shared, "User:CN=kquota-agent-*,O=kquota", "User:agent"],
        kquota_callback_broker_principals=shared[:1],
        kquota_callback_admin_principals=shared[1:2],
        kquota_callback_operator_principals=shared[2:],
    )
    assert run_tasks(tmp_path, SET, given) == 1
    found = javaproperties.loads(server_properties.read_text("utf-8"))
    assert found["kquota.agent.principals"] == "User:CN=kquota-agent-*,O=kquota;User:agent"
    assert set(found["kquota.exempt.principals"].split(";")) > set(shared)


@pytest.mark.long
def test_the_plug_in_takes_each_fallback_action_of_the_agents(tmp_path: Path, variables: Variables) -> None:
    wanted = {"unset": "pause", "pause": "pause", "open": "open", "bounded": "bounded", "own": "pause"}
    brokers: dict[str, dict[str, str]] = {name: {"kquota_fallback_action": name} for name in wanted}
    brokers["unset"] = {}
    brokers["own"] = {"kquota_fallback_action": "bounded", "kquota_callback_fallback_action": "pause"}
    for name in wanted:
        (tmp_path / f"{name}.properties").write_text("node.id=7\n")
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": brokers}}))
    given = variables(tmp_path / "{{ inventory_hostname }}.properties")
    del given["kquota_fallback_action"]
    run_play(tmp_path, PARTS, given, inventory=str(inventory))
    found = {name: javaproperties.loads((tmp_path / f"{name}.properties").read_text()) for name in wanted}
    assert {name: each["kquota.decision.lost.action"] for name, each in found.items()} == wanted


def test_check_mode_changes_nothing_and_shows_no_password(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    assert run_tasks(tmp_path, SET, variables(server_properties), "--check", "--diff") == 1
    assert server_properties.read_text("utf-8") == ORIGINAL
    # run_tasks returns no output of a successful play, so that this one fails after the same tasks.
    entrances = (*SET, ("kquota_callback", "nowhere"))
    with pytest.raises(PlayFailed) as failed:
        run_tasks(tmp_path, entrances, variables(server_properties), "--check", "--diff", "-vvv")
    assert "org.kquota.KquotaCallback" in str(failed.value)
    assert "hunter2" not in str(failed.value)


def test_a_missing_file_is_reported(tmp_path: Path, variables: Variables) -> None:
    with pytest.raises(PlayFailed, match=r"no\s+file\s+\S*/absent\.properties\s+on\s+localhost"):
        run_tasks(tmp_path, SET, variables(tmp_path / "absent.properties"))


def test_the_fence_wraps_the_authorizer_in_every_spelling(tmp_path: Path, variables: Variables) -> None:
    """One host for each spelling, in one play."""
    for name, (text, _) in AUTHORIZERS.items():
        (tmp_path / f"{name}.properties").write_bytes(f"node.id 7\n{text}".encode("latin-1"))
    given = variables(tmp_path / "{{ inventory_hostname }}.properties")
    run_play(tmp_path, PARTS, given, inventory=",".join(AUTHORIZERS))
    found = {
        name: javaproperties.loads((tmp_path / f"{name}.properties").read_bytes())[
            "kquota.fence.authorizer.class"
        ]
        for name in AUTHORIZERS
    }
    assert found == {name: wrapped for name, (_, wrapped) in AUTHORIZERS.items()}


def test_a_controller_of_its_own_keeps_its_authorizer(tmp_path: Path, variables: Variables) -> None:
    roles = {"combined": "broker, controller", "broker": "broker", "controller": " controller "}
    for name, value in roles.items():
        text = f"node.id=7\nprocess.roles={value}\nauthorizer.class.name={OWN}\n"
        (tmp_path / f"{name}.properties").write_text(text)
    given = variables(tmp_path / "{{ inventory_hostname }}.properties")
    run_play(tmp_path, PARTS, given, inventory=",".join(roles))
    found = {name: javaproperties.loads((tmp_path / f"{name}.properties").read_text()) for name in roles}
    assert {each["client.quota.callback.class"] for each in found.values()} == {"org.kquota.KquotaCallback"}
    assert {name: each["authorizer.class.name"] for name, each in found.items()} == {
        "combined": "org.kquota.KquotaAuthorizer",
        "broker": "org.kquota.KquotaAuthorizer",
        "controller": OWN,
    }


def test_installing_and_removing_the_fence_each_need_one_restart(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    hosts = {"upgraded": {}, "fenced": {"kquota_fence": True}, "removed": {"kquota_fence": False}}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
    text = "{{ kquota_callback_fingerprint }}"
    tasks = [
        *PARTS[:1],
        {"ansible.builtin.copy": {"content": text, "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}"}},
    ]
    unit = look_at_unit("LoadState=loaded", [], None, 0, b"")
    given = variables(server_properties, kquota_callback_unit=unit)
    run_play(tmp_path, tasks, given, inventory=str(inventory))
    started_with = {name: (tmp_path / name).read_text() for name in hosts}
    assert started_with["upgraded"] == started_with["fenced"] != started_with["removed"]


def test_the_roles_read_the_file_as_java_does(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "broker.id 3\nlog.dirs \\\n  /data/1,, \\\n  /data/\\u0032\\u00a0,/data/1 \\u001f\n"
        "listeners SASL\\://a:1,b\\://:2\n"
        "remote.log.storage.system.enable TRUE\nclient.quota.callback.class\torg.example.Callback\nx=\\\n"
    )
    wanted = {
        "node": "{{ kquota_callback_node_id }} {{ kquota_agent_node_id }}",
        "callback": "{{ kquota_callback_original_properties['client.quota.callback.class'] }}",
        "tiered": "{{ kquota_callback_tiered_storage | bool }}",
        "unfinished": "{{ kquota_callback_node.ends_in_continuation }}",
        "log_dirs": "{{ kquota_agent_log_dirs }}",
        "listeners": "{{ kquota_agent_listeners }}",
    }
    tasks = [
        *(
            {"ansible.builtin.include_role": {"name": role, "tasks_from": "facts_properties", "public": True}}
            for role in ("kquota_callback", "kquota_agent")
        ),
        {"ansible.builtin.copy": {"content": "{{ wanted | to_json }}", "dest": str(tmp_path / "found")}},
    ]
    run_play(tmp_path, tasks, {"kquota_server_properties": str(file), "wanted": wanted})
    assert json.loads((tmp_path / "found").read_text()) == {
        "node": "3 3",
        "callback": "org.example.Callback",
        "tiered": True,
        "unfinished": True,
        "log_dirs": ["/data/1", "/data/2\u00a0"],
        "listeners": ["SASL", "B"],
    }


def test_a_file_that_cannot_be_parsed_is_reported_without_its_passwords(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    server_properties.write_text(ORIGINAL + "log.dir=\\u00g0\n")
    with pytest.raises(PlayFailed, match=r"server\.properties[^$]*u00g0") as failed:
        run_tasks(tmp_path, SET, variables(server_properties), "-vvv")
    assert "hunter2" not in str(failed.value)
    assert server_properties.read_text("utf-8").endswith("u00g0\n")
