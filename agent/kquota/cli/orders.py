"""``kquota hold``, ``quarantine``, ``maintenance``, ``decommission``: operators' orders."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.cluster_look import CLIENT_NAME, ClusterLook, look_at_cluster
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, broker_id_of, settings_of
from kquota.cli.output import fail
from kquota.cli.planned_stop import await_lease, beyond_the_lease
from kquota.core.records import (
    HOLD_KEY,
    MAX_BROKER_ID,
    BrokerOrder,
    Hold,
    HoldAction,
    Note,
    broker_key,
    order_key,
)
from kquota.core.signing import SigningMode
from kquota.core.timestamps import format_utc
from kquota.core.usage import UsageRecord
from kquota.core.view import NoRecord
from kquota.daemon.signing import OrderNotSigned, OrderSeal
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.errors import KafkaFailure
from kquota.publish.documents import to_json
from kquota.publish.operator import publish_operator_record
from kquota.settings import Settings, SettingsError

hold_app = typer.Typer(help="Hold the whole cluster at PAUSE or OPEN, for a time.", no_args_is_help=True)

_LONGEST = timedelta(days=30)
_LOOK_SECONDS = 15.0
_WATCH_SECONDS = 0.2
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

DurationOption = Annotated[str, typer.Option("--for", help="How long: 90s, 30m, 2h, 1d; at most 30d.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it is shown wherever the order is.")]
ActorOption = Annotated[
    str | None, typer.Option("--actor", help="Author; by default this user at this host.")
]
EndOption = Annotated[bool, typer.Option("--end", help="End it now.")]
BrokerArgument = Annotated[int, typer.Argument(help="The broker's id.", min=0, max=MAX_BROKER_ID)]


def _holds(action: HoldAction) -> Callable[[str, str, Path, str | None], None]:
    def hold(
        duration: DurationOption,
        reason: ReasonOption,
        config: ConfigOption = DEFAULT_CONFIG,
        actor: ActorOption = None,
    ) -> None:
        settings = settings_of(config)
        note = _note(duration, reason, actor)
        _publish(settings, HOLD_KEY, Hold(action, note).to_document(), note.actor, reason)
        typer.echo(f"the cluster is held at {action.value} until {format_utc(note.until)}")

    return hold


hold_app.command("pause", help="Stop all producers that are not exempt.")(_holds(HoldAction.PAUSE))
hold_app.command(
    "open",
    help="Release producers whatever the volumes report; a broker over its own hard limit still pauses.",
)(_holds(HoldAction.OPEN))


@hold_app.command("release")
def hold_release(
    reason: ReasonOption = "", config: ConfigOption = DEFAULT_CONFIG, actor: ActorOption = None
) -> None:
    """End a hold now."""
    _withdraw(settings_of(config), HOLD_KEY, reason, actor)
    typer.echo("the hold is released")


def quarantine(
    broker_id: BrokerArgument,
    duration: DurationOption = "",
    reason: ReasonOption = "",
    end: EndOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    actor: ActorOption = None,
) -> None:
    """Take a broker's vote, except on itself: for one whose reports can't be trusted."""
    _order(BrokerOrder.QUARANTINE, broker_id, duration, reason, end, settings_of(config), actor)


def maintenance(
    duration: DurationOption = "",
    broker_id: Annotated[
        int | None,
        typer.Option("--broker", help="The broker; by default this host's.", min=0, max=MAX_BROKER_ID),
    ] = None,
    reason: ReasonOption = "planned stop",
    end: EndOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    actor: ActorOption = None,
) -> None:
    """Announce a planned stop of an agent: the broker's last report stays fresh, and its lease runs on.

    Waits until the lease of this host's decision runs for the given time, a day at most. Exits with 1 if it
    does not: then don't stop the agent yet.
    """
    settings = settings_of(config)
    here = broker_id_of(settings)
    broker = here if broker_id is None else broker_id
    note = _order(BrokerOrder.MAINTENANCE, broker, duration, reason, end, settings, actor)
    if note is None:
        return
    if broker != here:
        typer.echo("before its agent is stopped, look at the lease there: kquota decision")
    elif (problem := await_lease(settings, note.until)) is not None:
        fail(f"don't stop the agent yet: {problem}")
    if (warning := beyond_the_lease(note.until)) is not None:
        typer.echo(warning, err=True)


def decommission(
    broker_id: BrokerArgument,
    reason: ReasonOption,
    force: Annotated[bool, typer.Option("--force", help="Although it is active, or reports.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    actor: ActorOption = None,
) -> None:
    """Forget a broker that is gone for good, with the verdict it left.

    Refused for an active broker, and for one whose agent still reports: it would be back within a second.
    Where the last report is fresh, this waits for another one until it is stale.
    """
    settings = settings_of(config)
    if not force:
        _refuse_alive(settings, broker_id)
    _withdraw(settings, broker_key(broker_id), reason, actor)
    typer.echo(f"broker {broker_id} is decommissioned")


def _order(
    order: BrokerOrder,
    broker_id: int,
    duration: str,
    reason: str,
    end: bool,
    settings: Settings,
    actor: str | None,
) -> Note | None:
    """Give the order, or end it; return the order."""
    key = order_key(order, broker_id)
    if end:
        _withdraw(settings, key, reason, actor)
        typer.echo(f"the {order.value} of broker {broker_id} is ended")
        return None
    if not duration or not reason:
        fail("--for and --reason are needed (or --end)", exit_codes.USAGE)
    note = _note(duration, reason, actor)
    _publish(settings, key, note.to_document(), note.actor, reason)
    typer.echo(f"broker {broker_id} is in {order.value} until {format_utc(note.until)}")
    return note


def _note(duration: str, reason: str, actor: str | None) -> Note:
    match = _DURATION.fullmatch(duration)
    length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta(0)
    if not timedelta(0) < length <= _LONGEST:
        fail(f"--for {duration!r}: must be a time such as 90s, 30m, 2h or 1d, at most 30d", exit_codes.USAGE)
    if not reason.strip():
        fail("--reason: must not be empty", exit_codes.USAGE)
    return Note(datetime.now(UTC) + length, reason, actor or _user())


def _user() -> str:
    name = os.environ.get("SUDO_USER") or getpass.getuser()
    return f"{name}@{socket.gethostname()}"


def _withdraw(settings: Settings, key: str, reason: str, actor: str | None) -> None:
    _publish(settings, key, None, actor or _user(), reason)


def _publish(
    settings: Settings, key: str, document: dict[str, object] | None, actor: str, reason: str
) -> None:
    headers = [
        ("actor", actor.encode()),
        ("reason", reason.encode()),
        ("at", format_utc(datetime.now(UTC)).encode()),
    ]
    topic, value = settings.topics.usage.name, None if document is None else to_json(document)
    try:
        properties = ClientProperties(settings.librdkafka(), CLIENT_NAME)
        seal = OrderSeal(settings, key.encode(), value)
        sign = None if settings.signing.mode is SigningMode.OFF else seal.headers
        result = publish_operator_record(properties, topic, key.encode(), value, headers, sign=sign)
    except (ConfigurationError, SettingsError) as error:
        fail(str(error), exit_codes.CONFIGURATION)
    except (OSError, OrderNotSigned) as error:
        fail(f"nothing was ordered: {error}")
    if seal.warning is not None:
        typer.echo(f"warning: {seal.warning}", err=True)
    if isinstance(result, KafkaFailure):
        fail(f"nothing was ordered: {result.sentence}")


def _refuse_alive(settings: Settings, broker_id: int) -> None:
    with look_at_cluster(settings) as look:
        if not look.wait(_LOOK_SECONDS):
            fail("; ".join(look.problems) or "the cluster could not be read in time; --force goes on without")
        active = look.membership.active or frozenset()
        if broker_id in active:
            fail(f"broker {broker_id} is active: stop it first, or use --force", exit_codes.USAGE)
        last = look.view.record_of(broker_id, datetime.now(UTC))
        if last in (NoRecord.MISSING, NoRecord.TOMBSTONE):
            fail(f"broker {broker_id} has no report to forget", exit_codes.USAGE)
        if not isinstance(last, NoRecord):
            _refuse_reporting(look, broker_id, last, settings.staleness_seconds)


def _refuse_reporting(look: ClusterLook, broker_id: int, last: UsageRecord, staleness_seconds: float) -> None:
    """Refuse when another report comes before the last one is stale: its agent would undo the order."""
    stale_at = last.snapshot_at + timedelta(seconds=staleness_seconds)
    if (now := datetime.now(UTC)) <= stale_at:
        age_seconds = (now - last.snapshot_at).total_seconds()
        typer.echo(
            f"broker {broker_id} reported {max(0.0, age_seconds):.0f} s ago: does its agent report again?"
            f" Waiting until {format_utc(stale_at)}",
            err=True,
        )
    while datetime.now(UTC) <= stale_at:
        look.take(_WATCH_SECONDS)
        newest = look.view.record_of(broker_id, datetime.now(UTC))
        if not isinstance(newest, NoRecord) and newest.snapshot_at != last.snapshot_at:
            fail(
                f"broker {broker_id}: its agent still reports: stop kquota-agent there first",
                exit_codes.USAGE,
            )
