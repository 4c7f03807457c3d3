"""The Grafana dashboard: every panel has its place, and Prometheus can answer every query."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from kquota.service.metrics import AgentMetrics
from tests.monitoring.promtool import REPOSITORY
from tests.monitoring.test_alerts import METRIC

DASHBOARD: dict[str, Any] = json.loads((REPOSITORY / "monitoring/grafana/kquota.json").read_text("utf-8"))
VARIABLE = re.compile(r"\$\{?(\w+)")


def everything() -> Iterator[dict[str, Any]]:
    """Yield rows and panels; those of a row are in it, or follow it."""
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", ())


def panels() -> Iterator[dict[str, Any]]:
    return (panel for panel in everything() if panel["type"] != "row")


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


def test_no_two_panels_are_in_one_place() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in everything():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_every_variable_that_a_query_names_can_be_chosen() -> None:
    known = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert known == {"datasource", "job", "cluster", "instance"}
    asked = [variable["query"] for variable in DASHBOARD["templating"]["list"]]
    for text in (*queries(), *(str(query) for query in asked)):
        assert set(VARIABLE.findall(text)) <= known, text


def test_it_is_found_under_its_name_and_not_changed_in_grafana_alone() -> None:
    assert (DASHBOARD["uid"], DASHBOARD["title"], DASHBOARD["editable"]) == ("kquota", "kquota", False)


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
