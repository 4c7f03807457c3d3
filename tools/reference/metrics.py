"""The page of metrics: the agent's registry, as Prometheus reads it."""

from __future__ import annotations

from pathlib import Path

from kquota.service.metrics import AgentMetrics
from tools.reference.broker import table_of
from tools.reference.markdown import code, head, sentence, table


def metrics_page(repository: Path) -> str:
    """Return docs/metrics.md."""
    lines = head(
        "Metrics",
        "The agent serves these for Prometheus, by default on `127.0.0.1:9464`"
        " ([`metrics.listen`](configuration.md#metrics-and-log)). Counters exist from the start,"
        " at zero; a figure that is not known is absent. Alerts on them are in [alerts](alerts.md), a"
        " dashboard in [monitoring](../monitoring/README.md).",
        origin="the agent's registry of metrics",
    )
    rows = []
    for family in sorted(AgentMetrics("0").registry.collect(), key=lambda family: family.name):
        named = getattr(family, "_labelnames", ())  # those of a family without a series
        labels = sorted({*named, *(label for sample in family.samples for label in sample.labels)} - {"le"})
        name = family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")
        rows.append([code(name), family.type, ", ".join(map(code, labels)), sentence(family.documentation)])
    lines += table(["metric", "type", "labels", "meaning"], rows)
    lines += [
        "## Of the plug-in",
        "",
        "The broker shows these over JMX, in the bean"
        " `kafka.server:type=plugins,config=client.quota.callback.class,class=KquotaCallback,role=broker`.",
        "",
        *table_of(repository, "Metrics"),
    ]
    return "\n".join([*lines, ""])
