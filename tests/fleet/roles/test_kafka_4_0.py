"""While a node runs Kafka 4.0, all nodes name the classes without metrics, and later those with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import javaproperties
import pytest

from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.roles.plays import PlayFailed, run_play

BROKERS, CONTROLLERS = ("broker-1", "broker-2"), ("controller-1",)
NODES = BROKERS + CONTROLLERS
WITH, WITHOUT = (
    ("org.kquota.KquotaCallback", "org.kquota.KquotaAuthorizer"),
    ("org.kquota.CallbackWithoutMetrics", "org.kquota.AuthorizerWithoutMetrics"),
)
PREFLIGHT = ("facts_properties", "preflight_names")
CONFIGURE = ("facts_properties", "configure_properties")


class Cluster:
    """Two brokers and a controller, whose folders have the jars of a Kafka under the names of any version."""

    def __init__(self, folder: Path, plug_in: dict[str, object], **variables: object) -> None:
        self._folder = folder
        self._inventory = folder / "hosts.yml"
        groups = {"kafka_brokers": BROKERS, "kafka_controllers": CONTROLLERS}
        children = {group: {"hosts": dict.fromkeys(names)} for group, names in groups.items()}
        self._inventory.write_text(json.dumps({"all": {"children": children}}))
        for name in NODES:
            roles = "broker" if name in BROKERS else "controller"
            text = f"node.id=7\nprocess.roles={roles}\nauthorizer.class.name=org.example.Own\n"
            self.file(name).write_text(text)
            (folder / name / "libs").mkdir(parents=True)
            for jar in ensure_kafka_runtime().jars.iterdir():
                (folder / name / "libs" / jar.name).symlink_to(jar)
        self._variables = {
            **plug_in,
            "kquota_callback_kafka_home": f"{folder}/{{{{ inventory_hostname }}}}",
            "kquota_callback_server_properties": f"{folder}/{{{{ inventory_hostname }}}}.properties",
            "kquota_callback_directory": f"{folder}/{{{{ inventory_hostname }}}}",
            "kquota_callback_java": shutil.which("java"),
            "kquota_callback_agent_principals": ["User:agent"],
            "kquota_callback_broker_principals": ["User:broker"],
            **variables,
        }

    def file(self, name: str) -> Path:
        return self._folder / f"{name}.properties"

    def upgrade(self, name: str, version: str) -> None:
        (old,) = (self._folder / name / "libs").glob("kafka-clients-*.jar")
        old.rename(old.with_name(f"kafka-clients-{version}.jar"))

    def play(self, *parts: str, limit: str = "all", saves: bool = False) -> str:
        tasks: list[dict[str, object]] = [
            {
                "ansible.builtin.include_role": {
                    "name": "kquota_callback",
                    "tasks_from": part,
                    "public": True,
                },
                "vars": {"kquota_callback_looks_at_versions": "preflight_names" in parts},
            }
            for part in parts
        ]
        if saves:
            lines = "{{ kquota_broker_properties | dictsort | map('join', '=') | join('\n') }}"
            command = {
                "argv": ["tee", f"{self._folder}/{{{{ inventory_hostname }}}}.offered"],
                "stdin": lines,
            }
            tasks.append({"ansible.builtin.command": command})
        inventory = str(self._inventory)
        return " ".join(
            run_play(self._folder, tasks, self._variables, "--limit", limit, inventory=inventory).split()
        )

    def names(self, file: str = "{}.properties") -> dict[str, tuple[str, str]]:
        found = {}
        for name in NODES:
            properties = javaproperties.loads((self._folder / file.format(name)).read_text("utf-8"))
            keys = ("client.quota.callback.class", "authorizer.class.name")
            found[name] = tuple(properties.get(key, "") for key in keys)
        return found


def names_of_all(callback: str, fence: str, own: str = "org.example.Own") -> dict[str, tuple[str, str]]:
    return {name: (callback, fence if name in BROKERS else own) for name in NODES}


@pytest.mark.long
@pytest.mark.parametrize("former", ["broker-1", "controller-1"])
def test_all_nodes_have_the_same_names_until_the_last_node_is_upgraded(
    former: str, tmp_path: Path, plug_in: dict[str, object]
) -> None:
    cluster = Cluster(tmp_path, plug_in)
    cluster.upgrade(former, "4.0.2")
    said = cluster.play(*PREFLIGHT, *CONFIGURE)
    assert f"{former}: Kafka 4.0 has no place for metrics" in said
    assert cluster.names() == names_of_all(*WITHOUT)

    # set_mode.yml and others look at no version, and a run for some nodes does not know that of the others.
    assert "changed=1" not in cluster.play(*CONFIGURE)
    others = ",".join(set(NODES) - {former})
    assert "changed=1" not in cluster.play(*PREFLIGHT, *CONFIGURE, limit=others)
    assert cluster.names() == names_of_all(*WITHOUT)

    cluster.upgrade(former, "4.1.2")
    said = cluster.play(*PREFLIGHT, *CONFIGURE)
    assert said.count("KquotaCallback replaces the class without metrics") == len(NODES)
    assert said.count("changed=1") == len(NODES)
    assert cluster.names() == names_of_all(*WITH)


def test_the_owner_of_server_properties_is_offered_the_same_names(
    tmp_path: Path, plug_in: dict[str, object]
) -> None:
    cluster = Cluster(tmp_path, plug_in, kquota_properties="export")
    cluster.upgrade("broker-2", "4.0.2")
    with pytest.raises(PlayFailed, match=r"must\s+be\s+'org\.kquota\.CallbackWithoutMetrics'"):
        cluster.play(*PREFLIGHT, *CONFIGURE)
    offered = names_of_all(*WITHOUT, own="")
    assert cluster.names("{}/broker.properties") == offered
    # The owner's play looks at no version.
    cluster.play("export", saves=True)
    assert cluster.names("{}.offered") == offered
