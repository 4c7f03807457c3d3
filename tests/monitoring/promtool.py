"""Alerts tried by promtool, Prometheus's own tester of rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = REPOSITORY / "monitoring/prometheus/kquota.rules.yml"
HERE = {"job": "kquota", "instance": "kafka1:9464"}


def rules() -> dict[str, dict[str, Any]]:
    """Return the alerts by name."""
    groups = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@dataclass(frozen=True)
class Case:
    """An alert that is silent, fires and recovers.

    ``series`` are samples by metric and labels (job and instance are added), one each 15 s, in promtool's own
    notation; times are of the same clock. ``labels`` are those of the alert, without its name and severity.
    """

    alert: str
    series: Mapping[str, str]
    silent_at: str
    firing_at: str
    recovered_at: str
    labels: Mapping[str, str]
    summary: str
    description: str | None = None  # where it names a value

    def document(self) -> dict[str, Any]:
        """Return promtool's own form of it."""
        rule = rules()[self.alert]
        fired = {
            "exp_labels": {**rule["labels"], **self.labels},
            "exp_annotations": {
                **rule["annotations"],
                "summary": self.summary,
                "description": self.description or rule["annotations"]["description"],
            },
        }

        def at(time: str, *alerts: dict[str, Any]) -> dict[str, Any]:
            return {"eval_time": time, "alertname": self.alert, "exp_alerts": list(alerts)}

        return {
            "rule_files": [str(RULES)],
            "evaluation_interval": "15s",
            "tests": [
                {
                    "interval": "15s",
                    "input_series": [
                        {"series": located(name), "values": values} for name, values in self.series.items()
                    ],
                    "alert_rule_test": [
                        at(self.silent_at),
                        at(self.firing_at, fired),
                        at(self.recovered_at),
                    ],
                }
            ],
        }


def located(series: str) -> str:
    """Return a series with where it was scraped."""
    name, _, labels = series.partition("{")
    own = ", ".join(f"{key}={json.dumps(value)}" for key, value in HERE.items() if f"{key}=" not in labels)
    return f"{name}{{{', '.join(part for part in (labels.removesuffix('}'), own) if part)}}}"


def run(promtool: Path, case: Case, directory: Path) -> subprocess.CompletedProcess[str]:
    """Have promtool try a case."""
    return _run(promtool, case.document(), directory / f"{case.alert}.yml")


def firing(
    promtool: Path, series: Mapping[str, str], alerts: Mapping[str, bool], at: str, file: Path
) -> subprocess.CompletedProcess[str]:
    """Have promtool look whether these alerts fire at a moment, or do not."""
    located_series = [{"series": located(name), "values": values} for name, values in series.items()]
    expressions = [
        {
            "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)',
            "eval_time": at,
            "exp_samples": [{"labels": "{}", "value": int(fires)}],
        }
        for alert, fires in alerts.items()
    ]
    test = {"interval": "15s", "input_series": located_series, "promql_expr_test": expressions}
    document = {"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": [test]}
    return _run(promtool, document, file)


def _run(promtool: Path, document: dict[str, Any], file: Path) -> subprocess.CompletedProcess[str]:
    file.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), "utf-8")
    command = [str(promtool), "test", "rules", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
