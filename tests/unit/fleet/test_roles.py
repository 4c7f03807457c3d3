"""Properties of the roles and plays as they are written, without a host to try them on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import kquota
from kquota.kafka.topics import (
    BROKERS_PER_PARTITION,
    DESIRED_REPLICAS,
    history_topic,
    orders_topic,
    usage_topic,
)
from kquota.settings.kafka_options import is_secret
from kquota.settings.model import Settings
from tests.unit.repository.tree import REPOSITORY

ROLES = sorted(path.name for path in (REPOSITORY / "roles").iterdir())
INVENTORIES = sorted((REPOSITORY / "inventories").iterdir())


def read(path: str | Path) -> Any:
    return yaml.safe_load((REPOSITORY / path).read_text("utf-8"))


def is_templated(value: object) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(isinstance(item, str) and "{{" in item for item in values)


def tasks_of(document: Any) -> list[dict[str, Any]]:
    """Return the tasks of a file of tasks or plays, those in blocks and plays among them."""
    found = []
    for entry in document or []:
        found.append(entry)
        for key in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            found += tasks_of(entry.get(key))
    return found


def all_tasks() -> list[tuple[str, dict[str, Any]]]:
    files = [*REPOSITORY.glob("roles/*/tasks/*.yml"), *REPOSITORY.glob("roles/*/handlers/*.yml")]
    files += [*REPOSITORY.glob("playbooks/*.yml"), *REPOSITORY.glob("playbooks/tasks/*.yml")]
    return [
        (path.relative_to(REPOSITORY).as_posix(), task) for path in files for task in tasks_of(read(path))
    ]


@pytest.mark.parametrize("role", ROLES)
def test_the_specification_names_every_variable_and_its_default(role: str) -> None:
    options = read(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = read(f"roles/{role}/defaults/main.yml")
    assert set(options) == set(defaults)
    for name, value in defaults.items():
        assert name.startswith(f"{role}_")
        assert options[name]["description"], name
        if is_templated(value):
            assert "default" not in options[name], f"{name}: its default is made from other variables"
        else:
            assert options[name]["default"] == value, name


def test_choices_that_yaml_reads_as_booleans_are_read_as_words() -> None:
    # test_scope and test_signing give each of these the boolean; add a test there with a further one.
    assert {
        name
        for role in ROLES
        for name, option in read(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"][
            "options"
        ].items()
        for choice in option.get("choices", [])
        if not isinstance(yaml.safe_load(str(choice)), str)
    } == {"kquota_agent_cordon", "kquota_agent_signing"}


def test_the_collection_and_the_roles_have_the_package_s_version() -> None:
    assert read("galaxy.yml")["version"] == kquota.__version__
    for role in ("kquota_agent", "kquota_callback"):
        default = read(f"roles/{role}/defaults/main.yml")[f"{role}_version"]
        assert re.findall(r"default\('(.*)'\)", default) == [kquota.__version__]
    for inventory in INVENTORIES:
        assert read(inventory / "group_vars/all.yml")["kquota_version"] == kquota.__version__


def test_topics_are_made_as_an_agent_makes_them() -> None:
    variables = read("roles/kquota_topic/vars/main.yml")
    assert variables["kquota_topic_usage_settings"] == dict(usage_topic().settings)
    assert variables["kquota_topic_orders_settings"] == dict(orders_topic().settings)
    history = variables["kquota_topic_history_settings"]
    expected = dict(history_topic().settings)
    assert set(history) == set(expected)
    plain = {name: value for name, value in history.items() if not is_templated(value)}
    assert plain == {name: expected[name] for name in plain}
    assert set(history) - set(plain) == {"retention.ms", "retention.bytes", "segment.bytes"}


def test_defaults_that_the_agent_has_as_well_are_the_same() -> None:
    def default(key: str) -> Any:
        return Settings.model_fields[key].get_default(call_default_factory=True)

    agent, topic = (read(f"roles/{role}/defaults/main.yml") for role in ("kquota_agent", "kquota_topic"))
    history = default("topics").history
    assert topic["kquota_topic_history_retention_hours"] == history.retention_hours
    assert topic["kquota_topic_history_retention_bytes"] == history.retention_bytes
    assert agent["kquota_agent_metrics_listen"] == str(default("metrics").listen)
    for limit in ("hard", "soft"):
        written = agent["kquota_agent_limits"][limit]
        assert (written["type"], written["level"]) == (
            getattr(default("limits"), limit).type.value,
            getattr(default("limits"), limit).level,
        )
    assert f"+ {BROKERS_PER_PARTITION - 1}) / {BROKERS_PER_PARTITION}" in topic["kquota_topic_partitions"]
    assert f"[{DESIRED_REPLICAS}," in topic["kquota_topic_replication_factor"]


def test_one_variable_sets_the_fallback_of_agent_and_plug_in() -> None:
    for role in ("kquota_agent", "kquota_callback"):
        variable = f"{role}_fallback_action"
        default = read(f"roles/{role}/defaults/main.yml")[variable]
        assert default == "{{ kquota_fallback_action | default('pause') }}"
        specification = read(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
        assert specification[variable]["choices"] == ["pause", "open", "bounded"]


def test_the_plug_in_is_installed_before_properties_that_a_former_one_refuses() -> None:
    def stages(file: str) -> list[str]:
        tasks = read(f"roles/kquota_callback/tasks/{file}")
        kinds = "ansible.builtin.import_tasks", "ansible.builtin.include_tasks"
        return [task[kind] for task in tasks for kind in kinds if kind in task]

    assert stages("main.yml") == ["preflight.yml", "prepare.yml", "configure.yml"]
    assert stages("prepare.yml") == ["install.yml", "configure_host.yml"]
    (write,) = (
        task["ansible.builtin.blockinfile"]
        for task in read("roles/kquota_callback/tasks/configure_properties.yml")
        if "ansible.builtin.blockinfile" in task
    )
    assert write["validate"] == "{{ kquota_callback_validate_command }}"
    variables = read("roles/kquota_callback/vars/main.yml")
    assert "'-cp', kquota_callback_jar ~ ':'" in variables["kquota_callback_check_command"]
    assert "{{ kquota_callback_version }}.jar" in variables["kquota_callback_jar"]


def test_inline_secrets_are_known_by_the_agent_s_own_rule() -> None:
    variables = read("roles/kquota_agent/vars/main.yml")["kquota_agent_inline_secrets"]
    takes, leaves = (
        re.search(rf"{filter_}\('search', '(.*)'\)", variables)[1]  # type: ignore[index]
        for filter_ in ("select", "reject")
    )
    names = """sasl.password ssl.key.password ssl.keystore.password sasl.oauthbearer.client.secret
        sasl.oauthbearer.config sasl.oauthbearer.client.credentials.client.secret ssl.key.location
        sasl.username bootstrap.servers ssl.keystore.location ssl.ca.location security.protocol ssl.key.pem
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.token.endpoint.url"""
    for name in names.split():
        taken = bool(re.search(takes, name)) and not re.search(leaves, name)
        assert taken == is_secret(name), name


def test_only_plays_restart_a_broker() -> None:
    def restarts_broker(task: dict[str, Any]) -> bool:
        service = task.get("ansible.builtin.systemd_service", {})
        return "broker_unit" in str(service.get("name", "")) and "state" in service

    assert [where for where, task in all_tasks() if restarts_broker(task)] == [
        "playbooks/rollback.yml",  # one that fails to start
        "playbooks/tasks/restart_node.yml",
    ]


def test_brokers_are_restarted_in_batches_with_a_healthy_cluster_before_and_after() -> None:
    (play,) = (play for play in read("playbooks/roll_plug_in.yml") if "roll_node.yml" in str(play))
    assert "kquota_restarts" in play["serial"]
    assert (play["max_fail_percentage"], play["any_errors_fatal"]) == (0, True)
    steps = [str(task) for task in read("playbooks/tasks/restart_node.yml")]
    healthy = [index for index, step in enumerate(steps) if "verify_cluster.yml" in step]
    (restart,) = [index for index, step in enumerate(steps) if "'restarted'" in step]
    assert healthy[0] < restart < healthy[-1]


def sees_secrets(task: dict[str, Any]) -> bool:
    """Whether a task's result may hold a password."""
    writes = "kquota_agent_secrets_dir" in str(task.get("ansible.builtin.copy", ""))
    reads = "ansible.builtin.slurp" in task and "applied.json" not in str(task)
    unlocks = "passphrase" in str(task.get("ansible.builtin.command", ""))
    return writes or reads or unlocks


def test_tasks_that_see_secrets_show_none() -> None:
    telling = [
        (where, task["name"]) for where, task in all_tasks() if sees_secrets(task) and not task.get("no_log")
    ]
    assert telling == []
    for where, task in all_tasks():
        if "ansible.builtin.blockinfile" in task:
            assert task.get("diff") is False, where


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_an_example_inventory_sets_what_the_roles_know(inventory: Path) -> None:
    known = set()
    for text in REPOSITORY.glob("roles/*/defaults/main.yml"):
        known |= set(read(text)) | set(re.findall(r"\bkquota_\w+", text.read_text("utf-8")))
    for text in [*REPOSITORY.glob("playbooks/*.yml"), *REPOSITORY.glob("playbooks/tasks/*.yml")]:
        known |= set(re.findall(r"\bkquota_\w+(?= \| default)", text.read_text("utf-8")))
    given: set[str] = set()
    for path in inventory.glob("group_vars/*.yml"):
        given |= set(read(path))
    groups = list(read(inventory / "hosts.yml").values())
    for group in [*groups, *(child for each in groups for child in each.get("children", {}).values())]:
        for variables in group.get("hosts", {}).values():
            given |= set(variables or {})
    assert {name for name in given if name.startswith("kquota_")} - known == set()


def test_plays_say_whether_they_gather_facts() -> None:
    # By default the control host's configuration decides (gathering).
    for path in REPOSITORY.glob("playbooks/*.yml"):
        for play in read(path):
            assert "hosts" not in play or "gather_facts" in play, (path.name, play["name"])
