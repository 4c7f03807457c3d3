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
from kquota.cli.operator_config import CommandConfigOption, OperatorConfig, operator_config
from kquota.cli.output import fail
from kquota.cli.planned_stop import await_lease, beyond_the_lease
from kquota.formats.record_verifier import RecordVerifier
from kquota.formats.records import (
    HOLD_KEY,
    LONGEST_ACTOR,
    LONGEST_ORDER,
    LONGEST_REASON,
    MAX_BROKER_ID,
    TopicKind,
    TopicRecord,
    decommission_key,
    order_key,
    read_record,
)
from kquota.formats.sentences import malformed_sentence, refused_sentence
from kquota.formats.signature_headers import SigningMode
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.kafka.documents import to_json
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.operator_producer import Published, publish_operator_record
from kquota.policy.events import (
    BrokerOrder,
    Event,
    Hold,
    HoldAction,
    MalformedEvent,
    OrderTerms,
    RefusedEvent,
)
from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord
from kquota.policy.view import NoRecord
from kquota.settings import Settings, SettingsError
from kquota.trust.signing import OrderNotSigned, OrderSigner, verifier_of

hold_app = typer.Typer(help="Hold the whole cluster at PAUSE or OPEN, for a time.", no_args_is_help=True)

_LOOK_SECONDS = 15.0
_CLOCK_TOLERANCE = timedelta(minutes=5)
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


def _holds(action: HoldAction) -> Callable[[str, str, Path, Path | None, str | None], None]:
    def hold(
        duration: DurationOption,
        reason: ReasonOption,
        config: ConfigOption = DEFAULT_CONFIG,
        command_config: CommandConfigOption = None,
        actor: ActorOption = None,
    ) -> None:
        note = note_of(duration, reason, actor)
        desk = OrderWriter.of(config, command_config)
        desk.publish(HOLD_KEY, Hold(action, note).to_document(), note.actor, reason)
        typer.echo(f"the cluster is held at {action.value} until {format_utc(note.until)}")

    return hold


hold_app.command("pause", help="Stop all producers that are not exempt.")(_holds(HoldAction.PAUSE))
hold_app.command(
    "open",
    help="Release producers whatever the volumes report; a broker over its own hard limit still pauses.",
)(_holds(HoldAction.OPEN))


@hold_app.command("release")
def hold_release(
    reason: ReasonOption = "",
    config: ConfigOption = DEFAULT_CONFIG,
    command_config: CommandConfigOption = None,
    actor: ActorOption = None,
) -> None:
    """End a hold now."""
    OrderWriter.of(config, command_config).withdraw(HOLD_KEY, reason, actor)
    typer.echo("the hold is released")


def quarantine(
    broker_id: BrokerArgument,
    duration: DurationOption = "",
    reason: ReasonOption = "",
    end: EndOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    command_config: CommandConfigOption = None,
    actor: ActorOption = None,
) -> None:
    """Take a broker's vote, except on itself: for one whose reports can't be trusted."""
    desk = OrderWriter.of(config, command_config)
    _order(BrokerOrder.QUARANTINE, broker_id, duration, reason, end, desk, actor)


def maintenance(
    duration: DurationOption = "",
    broker_id: Annotated[
        int | None,
        typer.Option("--broker", help="The broker; by default this host's.", min=0, max=MAX_BROKER_ID),
    ] = None,
    reason: ReasonOption = "planned stop",
    end: EndOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    command_config: CommandConfigOption = None,
    actor: ActorOption = None,
) -> None:
    """Announce a planned stop of an agent: the broker's last report stays fresh, and its lease runs on.

    Waits until the lease of this host's decision runs for the given time, a day at most. Exits with 1 if it
    does not: then don't stop the agent yet.
    """
    desk = OrderWriter.of(config, command_config)
    settings = desk.settings
    here = broker_id_of(settings)
    broker = here if broker_id is None else broker_id
    note = _order(BrokerOrder.MAINTENANCE, broker, duration, reason, end, desk, actor)
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
    command_config: CommandConfigOption = None,
    actor: ActorOption = None,
) -> None:
    """Forget a broker that is gone for good, with the verdict it left.

    Refused for an active broker, and for one whose agent still reports: it would be back within a second.
    Where the last report is fresh, this waits for another one until it is stale.
    """
    author = author_of(reason, actor)
    desk = OrderWriter.of(config, command_config)
    if not force:
        _refuse_alive(desk.settings, broker_id)
    desk.publish(decommission_key(broker_id), {"Reason": reason, "Actor": author}, author, reason)
    typer.echo(f"broker {broker_id} is decommissioned")


def _order(
    order: BrokerOrder,
    broker_id: int,
    duration: str,
    reason: str,
    end: bool,
    desk: OrderWriter,
    actor: str | None,
) -> OrderTerms | None:
    """Give the order, or end it; return the order."""
    key = order_key(order, broker_id)
    if end:
        desk.withdraw(key, reason, actor)
        typer.echo(f"the {order.value} of broker {broker_id} is ended")
        return None
    if not duration or not reason:
        fail("--for and --reason are needed (or --end)", exit_codes.USAGE)
    note = note_of(duration, reason, actor)
    desk.publish(key, note.to_document(), note.actor, reason)
    typer.echo(f"broker {broker_id} is in {order.value} until {format_utc(note.until)}")
    return note


def length_of(duration: str, option: str) -> timedelta:
    """Return a length of time as people write it; end with a usage error where it is none."""
    match = _DURATION.fullmatch(duration)
    length = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta(0)
    if not timedelta(0) < length <= LONGEST_ORDER:
        fail(
            f"{option} {duration!r}: must be a time such as 90s, 30m, 2h or 1d, at most 30d", exit_codes.USAGE
        )
    return length


def note_of(duration: str, reason: str, actor: str | None) -> OrderTerms:
    """Return the end of an order, its reason and its author; end with a usage error where one is wrong."""
    length = length_of(duration, "--for")
    author = author_of(reason, actor)
    # Readers count from the time at which a broker appends the record, and its clock may be behind.
    until = datetime.now(UTC) + min(length, LONGEST_ORDER - _CLOCK_TOLERANCE)
    return OrderTerms(until, reason, author)


def author_of(reason: str, actor: str | None) -> str:
    """Return the author of an order; end with a usage error where readers would not take it or the reason."""
    author = actor or user()
    if not reason.strip():
        fail("--reason: must not be empty", exit_codes.USAGE)
    for option, text, longest in (("--reason", reason, LONGEST_REASON), ("--actor", author, LONGEST_ACTOR)):
        if len(text) > longest:
            fail(f"{option}: must have at most {longest} characters", exit_codes.USAGE)
    return author


def user() -> str:
    """Return who runs the command, at which host."""
    name = os.environ.get("SUDO_USER") or getpass.getuser()
    return f"{name}@{socket.gethostname()}"


class OrderWriter:
    """Where orders are given: the topic by the agent's configuration, the credentials by the operator's."""

    def __init__(self, settings: Settings, operator: OperatorConfig) -> None:
        self.settings, self._operator = settings, operator

    @classmethod
    def of(cls, config: Path, command_config: Path | None) -> OrderWriter:
        """Read both configurations, or end with their problems."""
        settings = settings_of(config)
        return cls(settings, operator_config(command_config, settings))

    def withdraw(self, key: str, reason: str, actor: str | None) -> None:
        """Write a tombstone."""
        self.publish(key, None, actor or user(), reason)

    def publish(self, key: str, document: dict[str, object] | None, actor: str, reason: str) -> None:
        """Write an order, signed where records are; end with the reason if it can't be."""
        headers = [
            ("actor", actor.encode()),
            ("reason", reason.encode()),
            ("at", format_utc(datetime.now(UTC)).encode()),
        ]
        settings, operator = self.settings, self._operator
        topic, value = settings.topics.orders.name, None if document is None else to_json(document)
        record_signer = OrderSigner(settings, operator.files, operator.path, key.encode(), value)
        sign = None if settings.signing.mode is SigningMode.OFF else record_signer.headers
        try:
            verifier = verifier_of(settings)
            properties = ClientProperties(operator.options, CLIENT_NAME)
            result = publish_operator_record(properties, topic, key.encode(), value, headers, sign=sign)
        except (ConfigurationError, SettingsError) as error:
            fail(str(error), exit_codes.CONFIGURATION)
        except (OSError, OrderNotSigned) as error:
            fail(f"nothing was ordered: {error}")
        if record_signer.warning is not None:
            typer.echo(f"warning: {record_signer.warning}", err=True)
        if isinstance(result, KafkaFailure):
            fail(f"nothing was ordered: {result.sentence}")
        if (refusal := _refusal(result, key, value, verifier)) is not None:
            fail(f"the order is in topic {topic}, and agents do not obey it: {refusal}")


def _refusal(
    published: Published, key: str, value: bytes | None, verifier: RecordVerifier | None
) -> str | None:
    """Return why agents do not take this record, by their own judgement; None where they do.

    It can't be known before: their measure is the time at which a broker appended the record.
    """
    at_ms, place, headers = published.appended_ms, published.partition, tuple(published.headers)
    record = TopicRecord(key.encode(), value, at_ms, place, headers, TopicKind.ORDERS)
    if verifier is None:
        event: Event | None = read_record(record)
    else:
        judge = verifier.of_topic(published.topic)
        judge.cluster_id = published.cluster_id
        event = judge.read(record, datetime.now(UTC))
    if isinstance(event, RefusedEvent):
        return refused_sentence(event)
    return malformed_sentence(event) if isinstance(event, MalformedEvent) else None


def _refuse_alive(settings: Settings, broker_id: int) -> None:
    with look_at_cluster(settings) as look:
        if not look.wait(_LOOK_SECONDS):
            fail("; ".join(look.problems) or "the cluster could not be read in time; --force goes on without")
        active = look.membership.active or frozenset()
        if broker_id in active:
            fail(f"broker {broker_id} is active: stop it first, or use --force", exit_codes.USAGE)
        last = look.view.record_of(broker_id, datetime.now(UTC))
        if last in (NoRecord.MISSING, NoRecord.TOMBSTONE, NoRecord.REVOKED):
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
