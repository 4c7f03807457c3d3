"""The alert rules: Prometheus accepts them, and each one fires, is silent and recovers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kquota.service.metrics import AgentMetrics
from tests.monitoring.alert_cases import CASES
from tests.monitoring.promtool import REPOSITORY, RULES, Case, firing, rules, run

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


PAUSED = {
    'kquota_broker_info{broker="1", cluster_id="c"}': "1x300",
    'kquota_state{state="PAUSE"}': "1x300",
    'kquota_applied_state{state="PAUSE"}': "1x300",
    "kquota_throttle_factor_ratio": "0x300",
    "kquota_applied_factor_ratio": "0x300",
    "kquota_applied_known": "1x300",
}
"""An hour of a decided PAUSE."""
HOLDS = {
    'kquota_applied_mechanism{mechanism="none"}': "0x300",
    'kquota_applied_mechanism{mechanism="fence"}': "1x300",
    'kquota_applied_mode{mode="observe"}': "0x300",
    "kquota_enforcing": "1x300",
}
OBSERVES = {
    'kquota_applied_mechanism{mechanism="none"}': "1x300",
    'kquota_applied_mechanism{mechanism="fence"}': "0x300",
    'kquota_applied_mode{mode="observe"}': "1x300",
}
THROTTLED = {"kquota_throttle_factor_ratio": "0.5x300", "kquota_applied_factor_ratio": "0.5x300"}


@pytest.mark.accepts("G22")
@pytest.mark.parametrize(
    ("series", "paused", "slowed", "broken"),
    [
        pytest.param(HOLDS, True, False, False, id="they are held"),
        pytest.param(HOLDS | THROTTLED, False, True, False, id="they are slowed"),
        pytest.param(OBSERVES | {"kquota_enforcing": "1x300"}, False, False, True, id="the glass is broken"),
        pytest.param(OBSERVES | {"kquota_enforcing": "0x300"}, False, False, False, id="all observe"),
        pytest.param(
            OBSERVES | THROTTLED | {"kquota_enforcing": "0x300"}, False, False, False, id="all observe half"
        ),
    ],
)
def test_only_producers_that_are_held_are_said_to_be(
    series: dict[str, str], paused: bool, slowed: bool, broken: bool, promtool: Path, tmp_path: Path
) -> None:
    given = PAUSED | series
    if "kquota_throttle_factor_ratio" in series:
        given = {name: values for name, values in given.items() if "PAUSE" not in name}
    alerts = {"KquotaPaused": paused, "KquotaThrottling": slowed, "KquotaBrokenGlass": broken}
    done = firing(promtool, given, alerts, "60m", tmp_path / "rules.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_broker_that_says_nothing_and_is_to_hold_producers_is_taken_to_hold_them(
    promtool: Path, tmp_path: Path
) -> None:
    silent = {name: values for name, values in PAUSED.items() if "applied" not in name}
    silent |= {"kquota_applied_known": "0x300"}
    for enforcing, paused in (("1x300", True), ("0x300", False)):
        given = silent | {"kquota_enforcing": enforcing}
        done = firing(promtool, given, {"KquotaPaused": paused}, "60m", tmp_path / "rules.yml")
        assert done.returncode == 0, done.stdout + done.stderr


def test_one_broker_that_holds_producers_is_enough_to_say_so(promtool: Path, tmp_path: Path) -> None:
    elsewhere = 'instance="kafka2:9464"'
    others = {
        f"{name.removesuffix('}') + ', ' if '{' in name else name + '{'}{elsewhere}}}": values
        for name, values in (PAUSED | HOLDS).items()
    }
    given = PAUSED | OBSERVES | {"kquota_enforcing": "1x300"} | others
    alerts = {"KquotaPaused": True, "KquotaBrokenGlass": True}
    done = firing(promtool, given, alerts, "60m", tmp_path / "rules.yml")
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_inhibition_names_alerts_and_labels_that_exist() -> None:
    known = {name: rule["expr"] for name, rule in rules().items()}
    document = yaml.safe_load((REPOSITORY / "monitoring/alertmanager/inhibit_rules.yml").read_text("utf-8"))
    for inhibition in document["inhibit_rules"]:
        (sources,), (targets,) = inhibition["source_matchers"], inhibition["target_matchers"]
        names = [set(re.findall(r"Kquota\w+", matcher)) for matcher in (sources, targets)]
        assert names[0].isdisjoint(names[1])
        for name in names[0] | names[1]:
            # Each must have the labels that are compared, because labels that both lack count as equal.
            by = re.search(r"by \(([a-z_, ]+)\)", known[name])
            labels = set(by[1].split(", ")) if by else {"job", "instance", "volume", "role"}
            assert set(inhibition["equal"]) <= labels, name
