"""The Grafana dashboard: fresh, and every query one that Prometheus can answer."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kquota.daemon.metrics import AgentMetrics
from tests.monitoring.test_alerts import METRIC
from tools.dashboard.__main__ import DASHBOARD, main


def panels() -> Iterator[dict[str, Any]]:
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def test_it_is_what_is_built_today() -> None:
    assert main(["--check"]) == 0, "run `make acceptance`"


def test_a_stale_one_is_noticed(tmp_path: Path) -> None:
    stale = tmp_path / "kquota.json"
    stale.write_text("{}", "utf-8")
    assert main(["--check"], stale) == 1
    assert main([], stale) == 0
    assert main(["--check"], stale) == 0


def test_every_panel_says_what_it_shows_and_asks_the_chosen_source() -> None:
    shown = list(panels())
    assert len(shown) > 12
    for panel in shown:
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"]


def test_every_metric_that_it_shows_is_one_of_the_agent_s() -> None:
    known = AgentMetrics("1").names()
    for query in queries():
        assert set(METRIC.findall(query)) <= known, query


def test_prometheus_understands_every_query(promtool: Path, tmp_path: Path) -> None:
    rules = [
        {"record": f"query:{number}", "expr": query.replace("$instance", ".*").replace("$job", "kquota")}
        for number, query in enumerate(queries())
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), "utf-8")
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
