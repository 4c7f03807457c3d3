"""``python -m tools.dashboard``: write monitoring/grafana/kquota.json; --check only sees if it is fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

from tools.dashboard import panels
from tools.freshness import asked_only_to_check, kept_fresh

REPOSITORY = Path(__file__).resolve().parents[2]
DASHBOARD = REPOSITORY / "monitoring/grafana/kquota.json"


def render() -> str:
    """Return the dashboard as JSON."""
    board = (
        dashboard.Dashboard("kquota")
        .uid("kquota")
        .tags(["kafka", "kquota"])
        .description("Disks of a Kafka cluster, and how producers are held because of them.")
        .time("now-6h", "now")
        .refresh("30s")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_variable("job", "Job", "label_values(kquota_build_info, job)"))
        .with_variable(
            _variable("cluster", "Cluster", 'label_values(kquota_broker_info{job="$job"}, cluster_id)')
        )
        .with_variable(
            _variable(
                "instance",
                "Agent",
                'label_values(kquota_broker_info{job="$job", cluster_id="$cluster"}, instance)',
            )
            .multi(True)
            .include_all(True)
        )
    )
    for panel in panels.overview():
        board = board.with_panel(panel)
    for title, row in (
        ("Decisions", panels.decisions()),
        ("Volumes", panels.volumes()),
        ("Agents", panels.agents()),
    ):
        board = board.with_row(dashboard.Row(title))
        for part in row:
            board = board.with_panel(part)
    return JSONEncoder(sort_keys=True, indent=2).encode(board.build()) + "\n"


def _variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .query(query)
        .datasource(panels.DATASOURCE)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
    )


def main(arguments: list[str] | None = None, path: Path = DASHBOARD) -> int:
    """Run; return 0 when all is well, 1 for a stale file."""
    check = asked_only_to_check("python -m tools.dashboard", __doc__, arguments)
    return 0 if kept_fresh(path, render(), check=check, command="make acceptance") else 1


if __name__ == "__main__":
    sys.exit(main())
