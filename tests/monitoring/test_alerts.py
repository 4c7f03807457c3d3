"""The alert rules: Prometheus accepts them, and each one fires, is silent and recovers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from kquota.daemon.metrics import AgentMetrics
from tests.monitoring.alert_cases import CASES
from tests.monitoring.promtool import REPOSITORY, RULES, Case, rules, run

METRIC = re.compile(r"\bkquota_[a-z_]+")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as web views of Markdown name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_prometheus_accepts_the_rules(promtool: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_an_alert_is_silent_fires_and_recovers(case: Case, promtool: Path, tmp_path: Path) -> None:
    done = run(promtool, case, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_that_expects_the_wrong_thing_fails(promtool: Path, tmp_path: Path) -> None:
    wrong = Case("KquotaRivalAgent", {"kquota_rival_agent": "0x100"}, "2m", "9m", "14m", {}, "never")
    assert run(promtool, wrong, tmp_path).returncode != 0


def test_every_alert_has_a_case() -> None:
    assert sorted(case.alert for case in CASES) == sorted(rules())


@pytest.mark.parametrize("name", sorted(rules()))
def test_an_alert_says_how_bad_it_is_what_it_means_and_what_to_do(name: str) -> None:
    rule = rules()[name]
    assert rule["labels"]["severity"] in ("info", "warning", "critical")
    assert {"summary", "description", "runbook_url"} == set(rule["annotations"])
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor == name.lower()
    assert anchor in anchors(REPOSITORY / page)


def test_every_metric_that_is_named_is_one_of_the_agent_s() -> None:
    known = AgentMetrics("1").names()
    for name, rule in rules().items():
        named = set(METRIC.findall(rule["expr"]))
        assert named <= known, f"{name}: {named - known}"
