"""`backtest`: the effect of policies on the history, and what happened compared with the one in force."""

from __future__ import annotations

from typing import Annotated

import typer
from pyspark.sql import DataFrame

from kquota_pipeline.backtest.as_recorded import comparison, differences, spans
from kquota_pipeline.backtest.job import closed_loop, closed_loop_summary
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.cli.analysis import (
    PoliciesOption,
    ReplicationOption,
    SinceOption,
    TickOption,
    check_tick,
    policies_of,
)
from kquota_pipeline.cli.options import SparkOption, TablesOption
from kquota_pipeline.cli.reader import history_of, reader
from kquota_pipeline.cli.results import JsonOption, rows_of, show, to_json
from kquota_pipeline.history import History

AS_RECORDED_COLUMNS = (
    *("policy", "cluster_id", "reproduces", "sentence", "different_ratio", "held_ratio"),
    *("open_seconds", "recorded_open_seconds", "throttle_seconds", "recorded_throttle_seconds"),
    *("pause_seconds", "recorded_pause_seconds"),
)
"""The columns of a comparison for people; JSON has all."""
_LISTED_SPANS = 40


def backtest(
    tables: TablesOption,
    spark: SparkOption = None,
    since: SinceOption = None,
    policies: PoliciesOption = None,
    as_recorded: Annotated[
        bool,
        typer.Option(
            "--as-recorded",
            help="Compare what the policy in force does with what happened; with --policies, "
            "policies with other settings that the history does not have, such as the release margin.",
        ),
    ] = False,
    tick_seconds: TickOption = 600,
    replication_factor: ReplicationOption = 3.0,
    as_json: JsonOption = False,
) -> None:
    """Show the effect of other policies: time in each state, bytes delayed, disks filled."""
    wanted = (Policy("in force"),) if as_recorded and policies is None else policies_of(policies)
    history = history_of(reader(tables, spark, since), in_steps=not as_recorded)
    check_tick(history, tick_seconds)
    course = closed_loop(
        history.sampled(tick_seconds),
        history.decisions,
        history.clients,
        history.operators,
        wanted,
        tick_seconds,
        replication_factor,
    )
    if as_recorded:
        _compare(course, history, tick_seconds, as_json=as_json)
        return
    outcome = closed_loop_summary(course, tick_seconds)
    show(outcome.orderBy("cluster_id", "policy"), "Back-test", as_json)


def _compare(course: DataFrame, history: History, tick_seconds: int, *, as_json: bool) -> None:
    """Print how well the policies reproduce the history, and where they do not."""
    ticks = differences(
        course, history.usage, history.decisions, history.clients, history.operators, tick_seconds
    ).cache()
    compared = comparison(ticks, tick_seconds).orderBy("cluster_id", "policy")
    different = spans(ticks, tick_seconds).orderBy("cluster_id", "policy", "from_at")
    if as_json:
        typer.echo(to_json({"policies": rows_of(compared), "differences": rows_of(different)}))
    else:
        show(compared.select(*AS_RECORDED_COLUMNS), "As recorded", as_json)
        show(different.limit(_LISTED_SPANS), "Differences", as_json)
    ticks.unpersist()
