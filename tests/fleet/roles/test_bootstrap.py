"""The brokers' addresses in each form that an inventory may have."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fleet.roles.plays import run_play

# By host: what the inventory has, where the preflight connects, and what agent.yml and the pipeline get.
FORMS: dict[str, tuple[object, list[str], str, str]] = {
    "one": ("a:9093", ["a:9093"], "a:9093", "a:9093"),
    "some": ("a:1, b:2,", ["a:1", "b:2"], "a:1, b:2,", "a:1,b:2"),
    "list": (["a:1", "b:2"], ["a:1", "b:2"], "a:1,b:2", "a:1,b:2"),
    "protocol": ("SASL_SSL://a:1", ["a:1"], "SASL_SSL://a:1", "SASL_SSL://a:1"),
    "no-port": ("a,SSL://b", ["a:9092", "b:9092"], "a,SSL://b", "a:9092,b:9092"),
    "six": ("[::1],[::2]:1", ["[::1]:9092", "[::2]:1"], "[::1],[::2]:1", "[::1]:9092,[::2]:1"),
    "none": ("", [], "", ""),
}


def test_each_form_gives_what_every_reader_takes(tmp_path: Path) -> None:
    parts = (("kquota_agent", "service"), ("kquota_pipeline", "service"), ("kquota_topic", "remove"))
    loads = [
        {"ansible.builtin.import_role": {"name": role, "tasks_from": part}, "when": False}
        for role, part in parts
    ]
    shown = (
        "{{ [kquota_agent_bootstrap, kquota_agent_configuration.kafka['bootstrap.servers'],"
        " kquota_pipeline_bootstrap_servers, kquota_topic_bootstrap_servers] | to_json }}"
    )
    write = {
        "ansible.builtin.copy": {"content": shown, "dest": f"{tmp_path}/{{{{ inventory_hostname }}}}.found"}
    }
    hosts = {
        name: {
            "kquota_kafka": {"bootstrap.servers": given},
            "kquota_bootstrap_servers": given,
            "kquota_topic_host": name,
        }
        for name, (given, *_) in FORMS.items()
    }
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": hosts}}))
    run_play(tmp_path, [*loads, write], {}, inventory=str(tmp_path / "hosts.yml"))
    found = {name: json.loads((tmp_path / f"{name}.found").read_text()) for name in FORMS}
    tools = {
        name: ",".join(given) if isinstance(given, list) else given for name, (given, *_) in FORMS.items()
    }
    assert found == {name: [*expected, tools[name]] for name, (_, *expected) in FORMS.items()}
