"""``kquota decide``: replay a situation offline, with the very core that the agent runs."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.output import fail, print_json
from kquota.formats.records import MAX_BROKER_ID
from kquota.formats.replays import InvalidReplay, read_events
from kquota.policy.decide import PolicySettings, Situation
from kquota.policy.decide import decide as decide_by_policy
from kquota.policy.decision import FallbackAction, Scope, decision_document
from kquota.policy.timestamps import InvalidTimestamp, parse_utc
from kquota.policy.view import ClusterView

# Far from the ends of the calendar, so that each sum with a duration is a date.
_EARLIEST_YEAR, _LATEST_YEAR = 1971, 9000
_MOST_SECONDS = 1_000_000_000  # thirty years: a moment that much earlier is still a date


def decide(
    records: Annotated[
        Path, typer.Option(help="Records in offset order, one JSON object a line; - reads standard input.")
    ],
    brokers: Annotated[str, typer.Option(help="Ids of the active brokers: 1,2,3.")],
    now: Annotated[str, typer.Option(help="The time to decide at, such as 2026-11-20T10:15:30.123Z.")],
    joining: Annotated[
        str, typer.Option(help="Ids that became active within the join grace; active, too.")
    ] = "",
    self_id: Annotated[
        int | None, typer.Option("--self", help="The broker to decide for.", min=0, max=MAX_BROKER_ID)
    ] = None,
    fallback: Annotated[
        FallbackAction, typer.Option(help="The action while a broker's state is not known.")
    ] = FallbackAction.PAUSE,
    scope: Annotated[
        Scope, typer.Option(help="The producers that are held: all, or those to topics on a volume.")
    ] = Scope.CLUSTER,
    staleness: Annotated[float, typer.Option(help="Seconds after which a record is stale.", min=0)] = 60,
    future_tolerance: Annotated[
        float, typer.Option(help="Seconds a record may be ahead of --now.", min=0)
    ] = 30,
) -> None:
    """Decide from recorded messages and print the decision file's JSON.

    A line of the file is {"key": "1", "timestamp_ms": 0, "value": {…} | null | "raw text"}: null is a
    tombstone, a text is the raw value. The timestamp is the time of storage, 0 or left out if it is not
    known. Mode, sequence and lease are null: only an agent has them.
    """
    joining_ids = _broker_ids(joining, "--joining")
    situation = Situation(
        active_brokers=_broker_ids(brokers, "--brokers") | joining_ids,
        joining_brokers=joining_ids,
        self_id=self_id,
    )
    moment = _moment(now)
    view = ClusterView(future_tolerance=_duration(future_tolerance, "--future-tolerance"))
    try:
        with sys.stdin if str(records) == "-" else records.open(encoding="utf-8") as lines:
            view.fold_all(read_events(lines), moment)
    except InvalidReplay as error:
        fail(f"{records}: {error}", exit_codes.USAGE)
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{records}: can't be read: {error}", exit_codes.USAGE)
    settings = PolicySettings(fallback, _duration(staleness, "--staleness"), scope)
    decision = decide_by_policy(view, situation, settings, moment)
    print_json(decision_document(decision, broker_id=self_id))


def _moment(text: str) -> datetime:
    try:
        moment = parse_utc(text)
    except InvalidTimestamp as error:
        fail(f"--now: {error}", exit_codes.USAGE)
    if not _EARLIEST_YEAR <= moment.year <= _LATEST_YEAR:
        fail(f"--now: {text!r} is not in a year from {_EARLIEST_YEAR} to {_LATEST_YEAR}", exit_codes.USAGE)
    return moment


def _duration(value: float, option: str) -> timedelta:
    if not 0 <= value <= _MOST_SECONDS:
        fail(f"{option}: {value:g} is no number of seconds from 0 to {_MOST_SECONDS}", exit_codes.USAGE)
    return timedelta(seconds=value)


def _broker_ids(text: str, option: str) -> frozenset[int]:
    ids = set()
    for part in text.replace(" ", "").split(","):
        if not part:
            continue
        if not (part.isascii() and part.isdigit()) or int(part) > MAX_BROKER_ID:
            fail(
                f"{option}: {part!r} is no broker id; allowed are ids separated by commas: 1,2,3",
                exit_codes.USAGE,
            )
        ids.add(int(part))
    return frozenset(ids)
