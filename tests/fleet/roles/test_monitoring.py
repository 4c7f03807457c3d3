"""The role kquota_monitoring, with files below a folder of the test and the real promtool."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

RULES = REPOSITORY / "monitoring/prometheus/kquota.rules.yml"
PROMETHEUS = {"rule_files": ["rules/*.yml"], "scrape_config_files": ["scrape/*.yml"]}
HOSTS = {
    "monitoring": {"hosts": {"localhost": {}}},
    "kafka_brokers": {
        "hosts": {
            "kafka1": {"kquota_agent_metrics_listen": "[::]:9464"},
            "kafka2": {"ansible_host": "198.18.0.2", "kquota_agent_metrics_listen": "0.0.0.0:9465"},
            "kafka3": {"ansible_host": "2001:db8::3", "kquota_agent_metrics_listen": "10.0.0.3:9464"},
        }
    },
}


@pytest.fixture
def promtool() -> Path:
    done = subprocess.run(
        [REPOSITORY / "tools/promtool.sh"], stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    return Path(done.stdout.strip())


class Monitoring:
    """The files of a host with Prometheus and Grafana."""

    def __init__(self, folder: Path, promtool: Path) -> None:
        self.folder = folder
        self.prometheus = folder / "prometheus"
        self.prometheus.mkdir()
        self.configure(PROMETHEUS)
        self.inventory = folder / "hosts.yml"
        self.inventory.write_text(yaml.safe_dump(HOSTS), "utf-8")
        self.variables = {
            "kquota_monitoring_source_dir": str(REPOSITORY / "monitoring"),
            "kquota_monitoring_prometheus_dir": str(self.prometheus),
            "kquota_monitoring_prometheus_unit": "",
            "kquota_monitoring_promtool": str(promtool),
            "kquota_monitoring_grafana_provisioning_dir": str(folder / "grafana/provisioning"),
            "kquota_monitoring_grafana_dashboards_dir": str(folder / "grafana/dashboards"),
            "kquota_monitoring_grafana_unit": "",
            "kquota_monitoring_runbook_url": "https://docs.example.org/alerts.html",
        }

    def configure(self, document: object) -> None:
        (self.prometheus / "prometheus.yml").write_text(yaml.safe_dump(document), "utf-8")

    def apply(self, *options: str, tasks_from: str = "main", **variables: object) -> int:
        """Run the role; return the number of changed tasks."""
        tasks = [{"ansible.builtin.include_role": {"name": "kquota_monitoring", "tasks_from": tasks_from}}]
        said = run_play(
            self.folder,
            tasks,
            {**self.variables, **variables},
            "--limit",
            "localhost",
            *options,
            inventory=str(self.inventory),
        )
        return int(said.rsplit("PLAY RECAP", 1)[1].split("changed=")[1].split()[0])

    def written(self) -> set[str]:
        mine = {"prometheus.yml", "hosts.yml", "play.json", "variables.json"}
        files = (path for path in self.folder.rglob("*") if path.is_file() and "ansible" not in path.parts)
        return {path.relative_to(self.folder).as_posix() for path in files if path.name not in mine}


@pytest.fixture
def host(tmp_path: Path, promtool: Path) -> Monitoring:
    return Monitoring(tmp_path, promtool)


def test_rules_targets_and_dashboard_are_written_and_removed(host: Monitoring, promtool: Path) -> None:
    assert host.apply("--check") > 0
    assert host.written() == set(), "a check writes nothing"
    assert host.apply() > 0
    assert host.written() == {
        "prometheus/rules/kquota.rules.yml",
        "prometheus/targets/kquota.json",
        "prometheus/scrape/kquota.yml",
        "grafana/provisioning/kquota.yml",
        "grafana/dashboards/kquota.json",
    }
    assert host.apply() == 0, "a second run changes nothing"

    rules = (host.prometheus / "rules/kquota.rules.yml").read_text("utf-8")
    expected = RULES.read_text("utf-8").replace("docs/alerts.md#", "https://docs.example.org/alerts.html#")
    assert yaml.safe_load(rules) == yaml.safe_load(expected)
    assert "{{ $labels.cluster_id }}" in rules
    (group,) = json.loads((host.prometheus / "targets/kquota.json").read_text("utf-8"))
    assert group["targets"] == ["198.18.0.2:9465", "[2001:db8::3]:9464", "kafka1:9464"]
    dashboard = (host.folder / "grafana/dashboards/kquota.json").read_bytes()
    assert dashboard == (REPOSITORY / "monitoring/grafana/kquota.json").read_bytes()
    provider = yaml.safe_load((host.folder / "grafana/provisioning/kquota.yml").read_text("utf-8"))
    assert provider["providers"][0]["options"]["path"] == str(host.folder / "grafana/dashboards")

    # Prometheus of Debian 12 has no scrape_config_files: the job works in scrape_configs, too.
    job = yaml.safe_load((host.prometheus / "scrape/kquota.yml").read_text("utf-8"))["scrape_configs"]
    host.configure({"rule_files": ["rules/*.yml"], "scrape_configs": job})
    checked = subprocess.run(
        [promtool, "check", "config", host.prometheus / "prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    rules_known = sum(len(group["rules"]) for group in yaml.safe_load(rules)["groups"])
    assert f"{rules_known} rules found" in checked.stdout

    assert host.apply(tasks_from="remove") > 0
    assert host.written() == set()


def test_targets_on_other_hosts_that_listen_on_loopback_are_refused(host: Monitoring) -> None:
    agents = {"kafka4": {}, "kafka5": {"kquota_agent_metrics_listen": "[::1]:9464"}, "localhost": {}}
    brokers = {**HOSTS["kafka_brokers"]["hosts"], **agents}
    host.inventory.write_text(yaml.safe_dump({**HOSTS, "kafka_brokers": {"hosts": brokers}}), "utf-8")
    with pytest.raises(PlayFailed) as failed:
        host.apply()
    said = " ".join(str(failed.value).split())
    assert "The agents of kafka4, kafka5 (2 hosts) listen on loopback alone" in said
    assert host.written() == set()
    # The ports are forwarded.
    assert host.apply(kquota_monitoring_targets=["127.0.0.1:19464"]) > 0


def test_a_missing_include_or_an_invalid_rule_fails_the_role(host: Monitoring, tmp_path: Path) -> None:
    host.configure({"rule_files": ["other/*.yml"]})
    with pytest.raises(PlayFailed, match=r"prometheus\.yml on localhost(.|\n)*scrape_config_files"):
        host.apply()

    broken = tmp_path / "broken"
    (broken / "prometheus").mkdir(parents=True)
    text = RULES.read_text("utf-8").replace("== 1", "=== 1")
    (broken / "prometheus/kquota.rules.yml").write_text(text, "utf-8")
    with pytest.raises(PlayFailed, match="failed to validate"):
        host.apply(kquota_monitoring_source_dir=str(broken))
    assert "=== 1" not in (host.prometheus / "rules/kquota.rules.yml").read_text("utf-8")


INCLUDED = {
    "rules": [
        "rules/kquota.*",
        "./rules//kquota.rules.yml",
        "*/*.yml",
        "rules/[i-m]*.y?l",
        "rules/[^a-c]quota.rules.yml",
        "/prom/rules/*",
    ],
    "not": [
        "/elsewhere/rules/*.yml",
        "more/rules/*.yml",
        "rules/*.yaml",
        "*.yml",
        "rules/[^k]*.yml",
        "rules",
    ],
}


def test_patterns_of_prometheus_are_matched_against_the_file_of_the_role(tmp_path: Path) -> None:
    shown = "SAYS {{ kquota_monitoring_left_out | map('basename') | join(' ') }}."
    tasks = [
        {
            "ansible.builtin.import_role": {"name": "kquota_monitoring", "tasks_from": "remove"},
            "when": False,
        },
        *(
            {
                "ansible.builtin.debug": {"msg": shown},
                "vars": {
                    "kquota_monitoring_prometheus_yml": {
                        "rule_files": ["first/*.yml", pattern],
                        "scrape_configs": [{"job_name": "kquota"}],
                    }
                },
            }
            for patterns in INCLUDED.values()
            for pattern in patterns
        ),
    ]
    said = run_play(tmp_path, tasks, {"kquota_monitoring_prometheus_dir": "/prom/"})
    found = [line.split("SAYS ")[1].split(".")[0] for line in said.splitlines() if "SAYS " in line]
    assert found == ["" for _ in INCLUDED["rules"]] + ["kquota" for _ in INCLUDED["not"]]


def test_hosts_behind_one_address_are_told_apart_by_their_ports(host: Monitoring) -> None:
    away = {"ansible_host": "localhost", "ansible_port": 2222}
    brokers = {"kafka4": away, "localhost": {}}
    host.inventory.write_text(yaml.safe_dump({**HOSTS, "kafka_brokers": {"hosts": brokers}}), "utf-8")
    with pytest.raises(PlayFailed, match=r"The\s+agents\s+of\s+kafka4\s+\(1\s+hosts\)\s+listen"):
        host.apply()
