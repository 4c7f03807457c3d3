"""The roles find Kafka as the common roles and packages install it (inventories/layouts)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.modules.kquota_node import look_at_unit
from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

INVENTORY = REPOSITORY / "inventories/layouts"
TEMPLATE = f"{{{{{{{{ lookup('ansible.builtin.template', '{REPOSITORY}/roles/{{}}') }}}}}}}}"
WANTED = {
    "unit": "{{ kquota_callback_drop_in_dir }}",
    "file": "{{ kquota_callback_server_properties }} {{ kquota_agent_server_properties }}",
    "user": "{{ kquota_callback_broker_user }}:{{ kquota_callback_broker_group }}",
    "tools": "{{ kquota_topic_tool[-4:] }}",
    "jars": "{{ kquota_callback_kafka_class_path.split(':') }}",
    "logging": "{{ kquota_callback_log4j2_configuration }}",
    "exports": "{{ kquota_callback_exports | bool }}",
    "environment": TEMPLATE.format("kquota_callback/templates/broker.env.j2"),
    "agent": TEMPLATE.format("kquota_agent/templates/fleet.conf.j2"),
}


def rendered(folder: Path) -> dict[str, dict[str, Any]]:
    """Render the roles' values and files for the host of each layout, in one play."""
    tasks = [
        *(
            {"ansible.builtin.import_role": {"name": role, "tasks_from": part}, "when": False}
            for role, part in (
                ("kquota_callback", "facts_properties"),
                ("kquota_agent", "service"),
                ("kquota_topic", "facts"),
            )
        ),
        {
            "ansible.builtin.copy": {
                "content": "{{ wanted | to_json }}",
                "dest": f"{folder}/{{{{ group_names | difference(['kafka_brokers']) | first }}}}.json",
            },
        },
    ]
    variables = {
        "wanted": WANTED,
        "vault_kquota_ca_passphrase": "secret",
        "kquota_callback_unit": look_at_unit("LoadState=loaded", [], None, 0, b""),
        "kquota_callback_original_properties": {},
        "kquota_topic_host": "{{ inventory_hostname }}",
    }
    run_play(folder, tasks, variables, inventory=str(INVENTORY))
    return {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in yaml.safe_load((INVENTORY / "hosts.yml").read_text())["kafka_brokers"]["children"]
    }


def test_the_roles_find_kafka_in_each_layout(tmp_path: Path) -> None:
    found = rendered(tmp_path)
    assert {name: each["unit"].rpartition("/")[2] for name, each in found.items()} == {
        "idealista": "kafka.service.d",
        "amq_streams": "amq_streams_broker.service.d",
        "confluent": "confluent-server.service.d",
        "tarball": "kafka.service.d",
    }
    assert {name: each["file"].split() for name, each in found.items()} == {
        "idealista": ["/etc/kafka/server.properties"] * 2,
        "amq_streams": ["/etc/amq_streams_broker.properties"] * 2,
        "confluent": ["/etc/kafka/server.properties"] * 2,
        "tarball": ["/srv/kafka/etc/server.properties"] * 2,
    }
    assert {name: each["user"] for name, each in found.items()} == {
        "idealista": "kafka:kafka",
        "amq_streams": "amq_streams_broker:amq_streams",
        "confluent": "cp-kafka:confluent",
        "tarball": "kafka:kafka",
    }
    assert {name: each["tools"][0] for name, each in found.items()} == {
        "idealista": "/opt/kafka",
        "amq_streams": "/opt/kafka_2.13-4.1.0.redhat-00001",
        "confluent": "/usr",
        "tarball": "/srv/kafka/current",
    }
    assert "/usr/share/java/kafka/*" in found["confluent"]["jars"]
    assert {name for name, each in found.items() if each["exports"]} == set(found) - {"tarball"}
    for name, each in found.items():
        unit, file = each["unit"].rpartition("/")[2].removesuffix(".d"), each["file"].split()[0]
        home = each["tools"][0]
        assert f"{home}/libs/*" in each["jars"]
        assert f"Before={unit}" in each["agent"], name
        assert f'kquota access "{file}"' in each["agent"], name
        assert f"-Dlog4j2.configurationFile={each['logging']},/etc/kquota-callback" in each["environment"]
        assert 'CLASSPATH="/usr/share/java/kquota-callback-' in each["environment"]


def test_the_agent_s_preflight_needs_the_configuration_which_may_be_a_symbolic_link(tmp_path: Path) -> None:
    preflight = yaml.safe_load(
        (REPOSITORY / "roles/kquota_agent/tasks/preflight_host.yml").read_text("utf-8")
    )
    known = {"ansible.builtin.import_role": {"name": "kquota_agent", "tasks_from": "service"}, "when": False}
    (look,) = (task for task in preflight if "Look at the host" in task["name"])
    given = {"kquota_agent_kafka": {}, "kquota_agent_preflight_clock_synchronized": False}
    show = {"ansible.builtin.debug": {"msg": "node {{ kquota_agent_node_id }}"}}
    file, link = tmp_path / "kept.properties", tmp_path / "server.properties"
    for absent in (link, tmp_path):
        with pytest.raises(PlayFailed) as failed:
            run_play(tmp_path, [known, look], {**given, "kquota_agent_server_properties": str(absent)})
        said = f"There is no file {absent} on localhost: set kquota_server_properties to the broker's"
        assert f"{said} configuration file." in " ".join(str(failed.value).split())
    file.write_text("node.id=7\n")
    link.symlink_to(file)
    given["kquota_agent_server_properties"] = str(link)
    assert "node 7" in run_play(tmp_path, [known, look, show], given)
