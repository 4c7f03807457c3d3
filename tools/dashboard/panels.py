"""The panels: what an operator looks at, and the queries behind it."""

from __future__ import annotations

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as dashboard_models

DATASOURCE = dashboard_models.DataSourceRef(type_val="prometheus", uid="${datasource}")
HERE = 'job="$job", instance=~"$instance"'
VOLUME_LEGEND = "{{instance}} {{mount_point}}"
COLOURS = {"OPEN": "green", "THROTTLE": "orange", "PAUSE": "red"}


def overview() -> list[stat.Panel]:
    """Return the answers to: is it all right, and since when, and until when."""
    state = (
        _figure("State", "The worst state that any agent has decided.", "none")
        .mappings(_states())
        .color_mode(common_models.BigValueColorMode.BACKGROUND)
        .thresholds(_thresholds())
        .with_target(_query(f"max({_state_number()})", "state", instant=True))
    )
    factor = (
        _figure("Left to producers", "The smallest throttle factor.", "percentunit")
        .thresholds(_thresholds(("red", None), ("orange", 0.000001), ("green", 1)))
        .with_target(_query(f"min(kquota_throttle_factor_ratio{{{HERE}}})", "factor", instant=True))
    )
    first = (
        _figure("First volume at its hard limit", "At the rate of the last minutes.", "s")
        .no_value("none fills")
        .thresholds(_thresholds(("red", None), ("orange", 86400), ("green", 7 * 86400)))
        .with_target(
            _query(f'min(kquota_volume_seconds_to_hard{{{HERE}, role="data"}})', "time", instant=True)
        )
    )
    undetermined = (
        _figure("Brokers not known", "Brokers without a usable report.", "none")
        .no_value("0")
        .thresholds(_thresholds(("green", None), ("red", 1)))
        .with_target(
            _query(
                f"count(max by (broker) (kquota_undetermined{{{HERE}}} == 1)) or vector(0)",
                "n",
                instant=True,
            )
        )
    )
    enforcing = (
        _figure("Enforcing", "Brokers that hold producers as decided, of those that are seen.", "percentunit")
        .thresholds(_thresholds(("orange", None), ("green", 1)))
        .with_target(
            _query(
                f"avg((kquota_enforcing{{{HERE}}} unless on (job, instance)"
                f' (kquota_applied_mode{{{HERE}, mode="observe"}} == 1)) or kquota_enforcing{{{HERE}}} * 0)',
                "share",
                instant=True,
            )
        )
    )
    return [
        panel.height(4).span(span)
        for panel, span in zip((state, factor, first, undetermined, enforcing), (5, 5, 6, 4, 4), strict=True)
    ]


def decisions() -> list[statetimeline.Panel | timeseries.Panel]:
    """Return what was decided, and what the brokers made of it."""
    return [
        _states_over_time("Decided", "What each agent has decided.", _state_number()),
        _states_over_time(
            "Applied",
            "What each broker's plug-in applies; where it differs from what is decided for long, look there.",
            _state_number("kquota_applied_state"),
        ),
        _lines(
            "Throttle factor",
            "1: producers are not held. 0: they are stopped.",
            "percentunit",
            (f"kquota_throttle_factor_ratio{{{HERE}}}", "{{instance}} decided"),
            (f"kquota_applied_factor_ratio{{{HERE}}}", "{{instance}} applied"),
        )
        .min(0)
        .max(1),
        _lines(
            "Not known",
            "Brokers whose state is not known, and why.",
            "none",
            (f"max by (broker, cause) (kquota_undetermined{{{HERE}}})", "broker {{broker}}: {{cause}}"),
        ).min(0),
    ]


def volumes() -> list[timeseries.Panel]:
    """Return how full the volumes are, and how fast they fill."""
    return [
        _lines(
            "Consumed",
            "Of the volume's capacity; what is reserved for the super-user counts as consumed.",
            "percentunit",
            (
                f"kquota_volume_consumed_bytes{{{HERE}}} / kquota_volume_capacity_bytes{{{HERE}}}",
                VOLUME_LEGEND,
            ),
        )
        .min(0)
        .max(1),
        _lines(
            "Headroom",
            "What is left between soft (1) and hard limit (0).",
            "percentunit",
            (f"kquota_volume_headroom_ratio{{{HERE}}}", VOLUME_LEGEND),
        )
        .min(0)
        .max(1),
        _lines(
            "Fill rate",
            "Of the last minutes; negative where more is deleted than written.",
            "binBps",
            (f"kquota_volume_fill_bytes_per_second{{{HERE}}}", VOLUME_LEGEND),
        ),
        _lines(
            "Time to the hard limit",
            "At that rate; no line for a volume that does not fill.",
            "s",
            (f"kquota_volume_seconds_to_hard{{{HERE}}}", VOLUME_LEGEND),
        ).min(0),
    ]


def agents() -> list[timeseries.Panel]:
    """Return how the agents are."""
    return [
        _lines(
            "Cycles",
            "How long the slowest of a hundred cycles takes.",
            "s",
            (
                "histogram_quantile(0.99, sum by (instance, le) "
                f"(rate(kquota_cycle_seconds_bucket{{{HERE}}}[5m])))",
                "{{instance}}",
            ),
        ).min(0),
        _lines(
            "Records read",
            "From the usage topic, by what became of them.",
            "ops",
            (f"sum by (result) (rate(kquota_records_total{{{HERE}}}[5m]))", "{{result}}"),
        ).min(0),
        _lines(
            "Errors",
            "Of the agents and of the plug-ins.",
            "ops",
            (f"sum by (kind) (rate(kquota_kafka_errors_total{{{HERE}}}[5m])) > 0", "Kafka: {{kind}}"),
            (f"sum by (reason) (rate(kquota_publish_errors_total{{{HERE}}}[5m])) > 0", "publish: {{reason}}"),
            (f"sum(rate(kquota_history_dropped_total{{{HERE}}}[5m])) > 0", "history dropped"),
            (f"sum by (kind) (rate(kquota_applied_errors_total{{{HERE}}}[5m])) > 0", "plug-in: {{kind}}"),
            (f"sum(rate(kquota_decision_write_errors_total{{{HERE}}}[5m])) > 0", "decision file"),
            (f"sum(rate(kquota_read_errors_total{{{HERE}}}[5m])) > 0", "reading"),
        ).min(0),
        _lines(
            "Certificates",
            "How long the agents' client certificates are valid.",
            "s",
            (
                f"kquota_client_certificate_expiry_timestamp_seconds{{{HERE}}} - time()",
                "{{instance}}",
            ),
        ),
    ]


def _state_number(metric: str = "kquota_state") -> str:
    """0 OPEN, 1 THROTTLE, 2 PAUSE, by instance."""
    throttle, pause = (
        f'max by (instance) ({metric}{{{HERE}, state="{state}"}})' for state in ("THROTTLE", "PAUSE")
    )
    return f"{throttle} + 2 * {pause}"


def _states() -> list[
    dashboard_models.ValueMap
    | dashboard_models.RangeMap
    | dashboard_models.RegexMap
    | dashboard_models.SpecialValueMap
]:
    return [
        dashboard_models.ValueMap(
            options={
                str(number): dashboard_models.ValueMappingResult(text=state, color=colour, index=number)
                for number, (state, colour) in enumerate(COLOURS.items())
            }
        )
    ]


def _thresholds(*steps: tuple[str, float | None]) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(dashboard_models.ThresholdsMode.ABSOLUTE)
        .steps(
            [
                dashboard_models.Threshold(color=colour, value=value)
                for colour, value in steps or (("green", None),)
            ]
        )
    )


def _query(expression: str, legend: str, *, instant: bool = False) -> prometheus.Dataquery:
    query = prometheus.Dataquery().expr(expression).legend_format(legend).datasource(DATASOURCE)
    return query.instant() if instant else query


def _figure(title: str, description: str, unit: str) -> stat.Panel:
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(DATASOURCE)
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _states_over_time(title: str, description: str, expression: str) -> statetimeline.Panel:
    return (
        statetimeline.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .mappings(_states())
        .height(8)
        .span(12)
        .with_target(_query(expression, "{{instance}}"))
    )


def _lines(title: str, description: str, unit: str, *queries: tuple[str, str]) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .unit(unit)
        .datasource(DATASOURCE)
        .height(8)
        .span(12)
        .fill_opacity(5)
    )
    for expression, legend in queries:
        panel = panel.with_target(_query(expression, legend))
    return panel
