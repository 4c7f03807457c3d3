"""`whatif`: the history in other circumstances."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota.formats.strict_json import InvalidJson, parse_json
from kquota.retention.relief_plan import InvalidPlan, Plan, plan_from_document
from kquota_pipeline.backtest.changes import Change
from kquota_pipeline.backtest.policy import Policy
from kquota_pipeline.backtest.relief import Relief, UnplayablePlan, check_version
from kquota_pipeline.backtest.relief_history import forecast_with, known_relief
from kquota_pipeline.backtest.whatif import CLUSTER, COLUMNS, PRODUCER, VOLUME, kept_by_time, what_if
from kquota_pipeline.cli.analysis import (
    ReplicationOption,
    SinceOption,
    TickOption,
    check_tick,
    policies_of,
)
from kquota_pipeline.cli.forecasts import print_forecast
from kquota_pipeline.cli.options import SparkOption, TablesOption, fail
from kquota_pipeline.cli.reader import history_of, reader
from kquota_pipeline.cli.results import rows_of, show, to_json
from kquota_pipeline.forecast.job import forecast
from kquota_pipeline.history import History
from kquota_pipeline.tables import TOPICS

_TITLES = {CLUSTER: "Clusters", VOLUME: "Volumes", PRODUCER: "Producers that are held"}
_MOST_PLAN_BYTES = 4 * 1024 * 1024


def whatif(
    tables: TablesOption,
    spark: SparkOption = None,
    since: SinceOption = None,
    policies: Annotated[
        Path | None,
        typer.Option(
            "--policies",
            help="YAML file of policies to try; without it, the limits that were in force.",
            dir_okay=False,
        ),
    ] = None,
    loads: Annotated[
        list[str] | None,
        typer.Option(
            "--load",
            metavar="USER[/CLIENT_ID]=FACTOR",
            help="Multiply what a user, or one client of it, sends; may be given several times.",
        ),
    ] = None,
    retentions: Annotated[
        list[str] | None,
        typer.Option(
            "--retention",
            metavar="TOPIC=FACTOR",
            help="Multiply how long a topic is kept; may be given several times.",
        ),
    ] = None,
    without: Annotated[
        list[int] | None,
        typer.Option("--without", metavar="BROKER", help="Lose a broker; may be given several times."),
    ] = None,
    relief: Annotated[
        Path | None,
        typer.Option(
            "--relief",
            metavar="PLAN",
            help="Apply the plan that kquota relief --plan has written, at the beginning of the history.",
            dir_okay=False,
        ),
    ] = None,
    tick_seconds: TickOption = 600,
    replication_factor: ReplicationOption = 3.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON: an object with lists of objects.")
    ] = False,
) -> None:
    """Show how full each volume gets and when, and who is held for how long, with another load, retention or
    set of brokers, with a relief plan, and with other limits (--policies).
    """
    plan = None if relief is None else _plan(relief)
    change = Change(
        loads={_client(name): factor for name, factor in _factors("--load", loads)},
        retentions=dict(_factors("--retention", retentions)),
        lost=frozenset(without or ()),
    )
    wanted = (Policy("in force"),) if policies is None else policies_of(policies)
    read = reader(tables, spark, since)
    history = history_of(read, in_steps=True, with_looks=plan is not None)
    check_tick(history, tick_seconds)
    needs_topics = change.retentions or plan is not None
    topics = read.of(TOPICS) if needs_topics else None
    _check_names(change, history.sampled(tick_seconds), history.clients, topics)
    given = replace(history, topics=topics)
    if relief is not None and plan is not None and topics is not None:
        change = replace(change, relief=_known(relief, plan, given, change.lost))
    answer = what_if(given, wanted, change, tick_seconds, replication_factor).cache()
    frames = {
        kind: answer.where(F.col("kind") == kind).select(*columns).orderBy(*_order(kind))
        for kind, columns in COLUMNS.items()
    }
    to_come = None if change.relief is None else _forecasts(given, change.relief)
    if as_json:
        document = {f"{kind}s": rows_of(frame) for kind, frame in frames.items()}
        typer.echo(to_json(document if to_come is None else {**document, "forecasts": rows_of(to_come)}))
    else:
        for kind, frame in frames.items():
            show(frame, _TITLES[kind], as_json)
        if to_come is not None:
            rows = [row.asDict(recursive=True) for row in to_come.collect()]
            print_forecast(rows, more=("is_changed",))
    answer.unpersist()


def _plan(path: Path) -> Plan:
    """Read a relief plan; ends the command if it is none that can be used."""
    try:
        document = parse_json(path.read_bytes(), _MOST_PLAN_BYTES)
        check_version(document)
        return plan_from_document(document)
    except OSError as error:
        fail(f"--relief: {path} can't be read: {error.strerror}")
    except (InvalidJson, InvalidPlan) as error:
        fail(f"--relief: {path} is no relief plan for this version: {error}")


def _known(path: Path, plan: Plan, history: History, lost: frozenset[int]) -> Relief:
    """Return the plan as the history can play it; ends the command if it can't."""
    assert history.topics is not None
    try:
        known = known_relief(plan, history.by_ten_minutes, history.topics)
    except UnplayablePlan as error:
        fail(f"--relief: {path}: {error}")
    if gone := sorted(known.brokers & lost):
        fail(f"--relief: {path} moves replicas of broker {gone[0]}, which --without takes away")
    return known


def _forecasts(history: History, relief: Relief) -> DataFrame:
    """Return the forecasts of the plan's cluster without and with the plan."""
    own = history.of_cluster(relief.cluster_id)
    without = forecast(own.by_hour, own.seen)
    both = [
        frame.withColumn("is_changed", F.lit(so))
        for so, frame in ((False, without), (True, forecast_with(relief, history)))
    ]
    return both[0].unionByName(both[1]).orderBy("cluster_id", "broker_id", "volume_name", "is_changed")


def _order(kind: str) -> list[Any]:
    if kind == VOLUME:
        return ["cluster_id", "policy", "broker_id", "volume_name", "is_changed"]
    if kind == PRODUCER:
        return ["cluster_id", "policy", "is_changed", F.col("paused_hours").desc(), "user", "client_id"]
    return ["cluster_id", "policy", "is_changed"]


def _factors(option: str, given: Iterable[str] | None) -> list[tuple[str, float]]:
    """Read NAME=FACTOR; a name may contain an equals sign, as those of certificates do."""
    found = []
    for text in given or ():
        name, equals, value = text.rpartition("=")
        try:
            factor = float(value)
        except ValueError:
            factor = -1.0
        if not equals or not name or not 0 <= factor <= 1000:
            raise typer.BadParameter(
                f"{text!r} is not NAME=FACTOR with a number from 0 to 1000", param_hint=option
            )
        found.append((name, factor))
    return found


def _client(name: str) -> tuple[str, str | None]:
    user, slash, client_id = name.partition("/")
    return user, client_id if slash else None


def _check_names(change: Change, usage: DataFrame, clients: DataFrame, topics: DataFrame | None) -> None:
    """End the command if the history does not have what is to change: a typing error must not pass for no
    effect.
    """
    for user, client_id in change.loads:
        found = clients.where(F.col("user") == user)
        if client_id is not None:
            found = found.where(F.col("client_id") == client_id)
        if found.isEmpty():
            fail(f"--load: the history has no client {user}{'' if client_id is None else f'/{client_id}'}")
    for broker_id in sorted(change.lost):
        if usage.where(F.col("broker_id") == broker_id).isEmpty():
            fail(f"--without: the history has no broker {broker_id}")
    for topic in change.retentions:
        if topics is None or topics.where(F.col("topic") == topic).isEmpty():
            fail(f"--retention: the table topics has no topic {topic}; it names the largest of each volume")
        if kept_by_time(topics, [topic]).where(F.col("leaves")).isEmpty():
            fail(
                f"--retention: the history has no retention by time of topic {topic}: it is compacted "
                "or bound by size alone, and its bytes stay"
            )
