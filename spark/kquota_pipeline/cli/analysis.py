"""`forecast`, `skew`, `accounting` and `report`: analyses of the tables."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from pyspark.sql import DataFrame

from kquota_pipeline import skew as skew_of
from kquota_pipeline.accounting.clients import by_client, by_group, by_quota_group, refused
from kquota_pipeline.accounting.topics import topic_thresholds
from kquota_pipeline.backtest.policy import InvalidPolicy, Policy, read_policies
from kquota_pipeline.backtest.stage import longest_usual_window
from kquota_pipeline.cli.forecasts import print_forecast
from kquota_pipeline.cli.options import SparkOption, TablesOption, fail, readable, say
from kquota_pipeline.cli.reader import history_of, reader, report_history
from kquota_pipeline.cli.results import JsonOption, show, to_json
from kquota_pipeline.forecast.accuracy import accuracy, forecast_errors
from kquota_pipeline.forecast.job import forecast as forecast_of
from kquota_pipeline.history import History
from kquota_pipeline.maintain.derived import (
    read_hours,
    read_looks,
)
from kquota_pipeline.recommend.write import folder_name, write_limits
from kquota_pipeline.report.model import Analysis, NoSamples, analyse, urgency
from kquota_pipeline.report.newest import newest_samples, reaches
from kquota_pipeline.report.page import page
from kquota_pipeline.tables import (
    GROUPS,
    QUARANTINE,
    REFUSALS,
    USAGE,
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
    read = reader(tables, spark, since)
    has_looks = read.looks()[1] is not None
    known = (read.made(read_hours), read.made(read_looks) if has_looks else None)
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
    read = reader(tables, spark, since)
    volumes = skew_of.volumes_now(newest_samples(read.of(USAGE), reaches(read.made(read_hours))))
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
        rows = by_quota_group(reader(tables, spark, since).of(GROUPS))
        show(rows.orderBy(rows["bytes"].desc()), "Quota groups", as_json)
        return
    if refusals:
        rows = refused(reader(tables, spark, since).of(REFUSALS))
        show(rows.orderBy(rows["requests"].desc()), "Refused", as_json)
        return
    history = history_of(reader(tables, spark, since), topics)
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
    read = reader(tables, spark, since)
    history = report_history(read, topics)
    check_tick(history, tick_seconds)
    named = {} if groups is None else read_groups(groups)
    quarantine = read.if_there(QUARANTINE)
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
            for path in write_limits(brokers, folder / folder_name(name) if len(clusters) > 1 else folder):
                say(f"{path} is written")
        else:
            say(f"cluster {readable(name)}: {cluster['recommendation']['problem']}")
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
