"""`forecast`, `skew`, `accounting` and `report`: analyses of the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pyspark.sql import DataFrame, SparkSession

from kquota_pipeline import skew as skew_of
from kquota_pipeline.accounting.attribution import BEFORE_DAYS
from kquota_pipeline.accounting.clients import by_client, by_group, by_quota_group, refused
from kquota_pipeline.accounting.topics import TOPIC_RATES, topic_thresholds
from kquota_pipeline.backtest.policy import InvalidPolicy, Policy, read_policies
from kquota_pipeline.backtest.stage import longest_usual_window
from kquota_pipeline.cli.forecasts import print_forecast
from kquota_pipeline.cli.options import SparkOption, TablesOption, day_named, fail, say
from kquota_pipeline.cli.results import JsonOption, show, to_json
from kquota_pipeline.cli.session import command_session
from kquota_pipeline.delta import NotATable, of_days, opened
from kquota_pipeline.forecast.accuracy import accuracy, forecast_errors
from kquota_pipeline.forecast.job import forecast as forecast_of
from kquota_pipeline.history import History
from kquota_pipeline.maintain.days import files_of_days
from kquota_pipeline.maintain.derived import (
    HOLDING_DAYS,
    WRITING_DAYS,
    read_derived,
    read_hours,
    read_looks,
    read_steps,
    read_ten_minutes,
)
from kquota_pipeline.recommend.write import write_limits
from kquota_pipeline.report.holders import DAYS
from kquota_pipeline.report.model import Analysis, NoSamples, analyse, urgency
from kquota_pipeline.report.newest import newest_samples, reaches
from kquota_pipeline.report.page import page
from kquota_pipeline.tables import (
    CLIENTS,
    DECISIONS,
    EXPIRY,
    GROUPS,
    OPERATORS,
    QUARANTINE,
    REFUSALS,
    TOPICS,
    USAGE,
    Table,
    Tables,
)

SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="DAY", help="Leave out records older than this UTC day: YYYY-MM-DD, or 30d ago."
    ),
]
PoliciesOption = Annotated[
    Path | None,
    typer.Option(
        "--policies", help="YAML file of policies to try; without it, a few examples.", dir_okay=False
    ),
]
GroupsOption = Annotated[
    Path | None,
    typer.Option(
        "--groups", help="YAML file: group → list of users that are counted together.", dir_okay=False
    ),
]
TopicsOption = Annotated[
    str | None,
    typer.Option(
        "--topics",
        help="URI of a Parquet table of what brokers took in by topic (see docs/pipeline-analysis.md).",
    ),
]
TickOption = Annotated[
    int, typer.Option("--tick-seconds", min=5, max=3600, help="Length of a step of the back-test.")
]
ReplicationOption = Annotated[
    float, typer.Option("--replication-factor", min=1, max=9, help="Mean replication factor of the topics.")
]

_ReadDerived = Callable[[SparkSession, Tables, date | None], DataFrame]


def forecast(
    tables: TablesOption,
    spark: SparkOption = None,
    since: SinceOption = None,
    with_accuracy: Annotated[
        bool, typer.Option("--accuracy", help="Instead: the accuracy of such forecasts, and of simpler ones.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show for each volume when and how likely it reaches its soft and hard limit, the first one first."""
    session, _, made = _reader(tables, spark, since)
    has_looks = _looks(session, tables, since)[1] is not None
    known = (made(read_hours), made(read_looks) if has_looks else None)
    if with_accuracy:
        show(accuracy(forecast_errors(*known)).orderBy("mean_error_ratio"), "Accuracy", as_json)
    else:
        found = sorted(forecast_of(*known).collect(), key=urgency)
        rows = [row.asDict(recursive=True) for row in found]
        if as_json:
            typer.echo(to_json(rows))
        else:
            print_forecast(rows)


def skew(
    tables: TablesOption,
    spark: SparkOption = None,
    since: SinceOption = None,
    moves: Annotated[
        bool, typer.Option("--moves", help="Instead: the move that gains most in each cluster.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show how unevenly brokers and their volumes are filled."""
    _, of, made = _reader(tables, spark, since)
    volumes = skew_of.volumes_now(newest_samples(of(USAGE), reaches(made(read_hours))))
    if moves:
        show(skew_of.best_moves(volumes), "Moves", as_json)
    else:
        show(skew_of.broker_skew(volumes).orderBy("cluster_id", "broker_id"), "Skew", as_json)


def accounting(
    tables: TablesOption,
    spark: SparkOption = None,
    since: SinceOption = None,
    groups: GroupsOption = None,
    topics: TopicsOption = None,
    quota_groups: Annotated[
        bool, typer.Option("--quota-groups", help="Instead: the usage of the brokers' own quota groups.")
    ] = False,
    refusals: Annotated[
        bool, typer.Option("--refused", help="Instead: whose produce requests were refused, and how often.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show bytes and throttle time by client, by group or by topic; or the refused clients."""
    if quota_groups:
        rows = by_quota_group(table_since(GROUPS, tables, spark, since))
        show(rows.orderBy(rows["bytes"].desc()), "Quota groups", as_json)
        return
    if refusals:
        rows = refused(table_since(REFUSALS, tables, spark, since))
        show(rows.orderBy(rows["requests"].desc()), "Refused", as_json)
        return
    history = history_of(tables, spark, since, topics)
    clients = by_client(history.clients)
    if history.rates is not None:
        show(topic_thresholds(history.rates).orderBy("cluster_id", "broker_id", "topic"), "Topics", as_json)
    elif groups is not None:
        show(by_group(clients, read_groups(groups)).orderBy("cluster_id", "group"), "Groups", as_json)
    else:
        show(clients.orderBy(clients["bytes"].desc()), "Clients", as_json)


def report(
    tables: TablesOption,
    to: Annotated[Path, typer.Option("--to", help="The page to write.", dir_okay=False)] = Path(
        "kquota-report.html"
    ),
    spark: SparkOption = None,
    since: SinceOption = None,
    policies: PoliciesOption = None,
    groups: GroupsOption = None,
    topics: TopicsOption = None,
    tick_seconds: TickOption = 600,
    replication_factor: ReplicationOption = 3.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the figures as JSON instead of writing a page.")
    ] = False,
) -> None:
    """Write one page with everything: forecasts, states, back-test, recommendation, clients, skew."""
    history = report_history(tables, spark, since, topics)
    check_tick(history, tick_seconds)
    named = {} if groups is None else read_groups(groups)
    quarantine = _if_there(history.usage.sparkSession, tables, QUARANTINE)
    analysis = _analysed(history, policies_of(policies), named, tick_seconds, replication_factor, quarantine)
    if as_json:
        typer.echo(to_json(analysis.document))
    else:
        to.write_text(page(analysis.document), "utf-8")
        say(f"{to} is written")


def read_groups(path: Path) -> dict[str, list[str]]:
    """Read groups of users from YAML; ends the command where it is not a mapping of names to lists of
    texts.
    """
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        fail(f"{path}: {error}")
    if not isinstance(document, dict):
        fail(f"{path}: must be a mapping of groups to lists of users")
    for group, users in document.items():
        if not isinstance(users, list) or not all(isinstance(user, str) for user in users):
            fail(f"{path}: {group}: {users!r} is not a list of users")
    return {str(group): users for group, users in document.items()}


def example_policies() -> tuple[Policy, ...]:
    """Return the policies that come with the package."""
    # Under spark-submit the package is in an archive.
    with as_file(files("kquota_pipeline").joinpath("policies", "examples.yml")) as path:
        return read_policies(path)


def write_recommendations(analysis: Analysis, folder: Path) -> list[str]:
    """Write the recommended limits of every cluster; return the commands for quotas."""
    commands: list[str] = []
    clusters: Any = analysis.document["clusters"]
    for cluster in clusters:
        name = cluster["cluster_id"]
        if name in analysis.recommended:
            brokers = analysis.recommended[name].brokers
            for path in write_limits(brokers, folder / name if len(clusters) > 1 else folder):
                say(f"{path} is written")
        else:
            say(f"cluster {name}: {cluster['recommendation']['problem']}")
        commands += cluster["quota_commands"]
    return commands


def check_tick(history: History, tick_seconds: int) -> None:
    """End the command if a step is shorter than the records of clients are long: they could not be placed."""
    window = longest_usual_window(history.clients)
    if window is not None and tick_seconds < window:
        fail(
            f"--tick-seconds {tick_seconds}: a step must not be shorter than the windows of the clients' "
            f"records, which are {window:g} s long"
        )


def _analysed(
    history: History,
    policies: tuple[Policy, ...],
    groups: dict[str, list[str]],
    tick_seconds: int,
    replication: float,
    quarantine: DataFrame | None,
) -> Analysis:
    try:
        return analyse(
            history,
            policies,
            groups,
            tick_seconds=tick_seconds,
            replication_factor=replication,
            now=datetime.now(UTC),
            progress=say,
            quarantine=quarantine,
        )
    except NoSamples as error:
        fail(str(error))


def policies_of(path: Path | None) -> tuple[Policy, ...]:
    """Return the policies of --policies, or the examples; ends the command if they can't be used."""
    try:
        return example_policies() if path is None else read_policies(path)
    except InvalidPolicy as error:
        fail(str(error))


def history_of(
    tables: str,
    spark: list[str] | None,
    since: str | None,
    topics: str | None = None,
    *,
    in_steps: bool = False,
    with_looks: bool = False,
) -> History:
    """Return the tables' history since a day; ends the command if a table can't be used.

    A simulation `in_steps` reads ten minutes, and a forecast needs it `with_looks`.
    """
    session, of, made = _reader(tables, spark, since)
    rates = None if topics is None else session.read.schema(TOPIC_RATES).parquet(topics)
    looks = _looks(session, tables, since)
    return History(
        of(USAGE),
        of(DECISIONS),
        of(CLIENTS),
        of(OPERATORS),
        *looks,
        made(read_hours),
        rates=rates,
        ten_minutes=made(read_ten_minutes) if in_steps else None,
        steps=made(read_steps) if in_steps else None,
        looks=made(read_looks) if with_looks and looks[1] is not None else None,
    )


def report_history(
    tables: str, spark: list[str] | None, since: str | None, topics: str | None = None
) -> History:
    """Return the same, with what `maintain` has derived for the account of the last days."""
    history = history_of(tables, spark, since, topics, in_steps=True, with_looks=True)
    session, place = history.usage.sparkSession, Tables(tables)
    days = files_of_days(session, place, USAGE)
    if not days:
        return history
    first = max(days) - timedelta(days=DAYS - 1 + BEFORE_DAYS)
    if since is not None:
        first = max(first, day_named(since, datetime.now(UTC).date(), "--since"))
    written = read_derived(session, place, WRITING_DAYS, first)
    # Without looks no day has holdings that are stored.
    held = None if history.topics is None else read_derived(session, place, HOLDING_DAYS, first)
    return replace(history, holdings=held, writings=written)


def _looks(
    session: SparkSession, tables: str, since: str | None
) -> tuple[DataFrame | None, DataFrame | None]:
    """Return the tables of agents that look at segments, None where a former version made the tables."""
    first = None if since is None else day_named(since, datetime.now(UTC).date(), "--since")
    found = [_if_there(session, tables, table) for table in (TOPICS, EXPIRY)]
    topics, expiry = (None if frame is None else of_days(frame, first) for frame in found)
    return (None, None) if topics is None or expiry is None else (topics, expiry)


def _if_there(session: SparkSession, tables: str, table: Table) -> DataFrame | None:
    """Return a table, None if a former version made the tables."""
    try:
        return opened(session, Tables(tables), table)
    except NotATable:
        return None


def table_since(table: Table, tables: str, spark: list[str] | None, since: str | None) -> DataFrame:
    """Return a table since a day; ends the command if it can't be used."""
    return _reader(tables, spark, since)[1](table)


def _reader(
    tables: str, spark: list[str] | None, since: str | None
) -> tuple[SparkSession, Callable[[Table], DataFrame], Callable[[_ReadDerived], DataFrame]]:
    """Start Spark; also return readers of tables and of derived ones, which end the command if a table can't
    be used.
    """
    first = None if since is None else day_named(since, datetime.now(UTC).date(), "--since")
    session = command_session("analysis", spark)

    def of(table: Table) -> DataFrame:
        try:
            frame = opened(session, Tables(tables), table)
        except NotATable as error:
            fail(str(error))
        return frame if first is None else frame.where(frame["day"] >= first)

    def made(read: _ReadDerived) -> DataFrame:
        try:
            return read(session, Tables(tables), first)
        except NotATable as error:
            fail(str(error))

    return session, of, made
