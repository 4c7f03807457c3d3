"""``kquota relief``: options that make room on a full volume, applied so that they can be undone."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Self

import typer
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined]  # not marked as exported

from kquota.cli import exit_codes
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption, JsonOption, broker_id_of, settings_of
from kquota.cli.operator_config import CommandConfigOption, operator_config
from kquota.cli.orders import ActorOption, OrderWriter, length_of, note_of
from kquota.cli.output import fail, print_json
from kquota.cli.relief_elsewhere import with_others
from kquota.cli.relief_inflow import measure_inflow
from kquota.cli.relief_lock import take_relief_lock
from kquota.cli.relief_look import (
    ReliefLook,
    ReliefVolume,
    connect,
    go_elsewhere,
    look,
    volume_of,
)
from kquota.cli.relief_run import ReliefRun, ReliefStopped
from kquota.display.figures import size_text
from kquota.display.relief_view import (
    by_hand,
    inflow_text,
    loss_text,
    move_command,
    option_lines,
    options_document,
)
from kquota.formats.records import relief_key
from kquota.formats.strict_json import InvalidJson, parse_json
from kquota.host.atomic import replace_file
from kquota.kafka.errors import KafkaFailure
from kquota.policy.events import OrderTerms
from kquota.retention.inflow import THROTTLED_RATE
from kquota.retention.operator_admin import OperatorConnection, TopicSetting
from kquota.retention.relief import Option, StepKind, breaches_again, is_spared
from kquota.retention.relief_moves import MOVES, reassignment, replayed, topics_of
from kquota.retention.relief_options import ranked
from kquota.retention.relief_plan import InvalidPlan, Plan, plan_from_document, planned
from kquota.settings import Settings

_MOST_OPTIONS = 8
_REGROWS = timedelta(days=7)
_PLAN_MODE = 0o600


def relief(
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Write the best option, or --option, to this new file.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option("--check", help="Play this plan on what is on the disk now.")
    ] = None,
    apply: Annotated[Path | None, typer.Option("--apply", help="Apply this plan, or go on with it.")] = None,
    undo: Annotated[Path | None, typer.Option("--undo", help="Give back all values of this plan.")] = None,
    option: Annotated[int, typer.Option(help="The number of the option to plan.", min=1)] = 1,
    volume: Annotated[
        str | None, typer.Option(help="This volume, by its name or mount point, and not the fullest one.")
    ] = None,
    restore_after: Annotated[
        str, typer.Option(help="Give values back once the volume has been below its soft limit this long.")
    ] = "",
    duration: Annotated[str, typer.Option("--for", help="How long the plan is shown as an order.")] = "7d",
    reason: Annotated[str, typer.Option(help="Why; with --plan.")] = "",
    config: ConfigOption = DEFAULT_CONFIG,
    command_config: CommandConfigOption = None,
    actor: ActorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Rank what would make room on this host's full volume: bytes, time, and what is lost.

    Only --apply and --undo change anything, with an operator's credentials. The plan of a move is a file for
    Kafka's own tool, and the command for it is printed. Internal topics and those of relief_protected are
    left alone; of compacted ones nothing is deleted. Exits with 1 if the volume that decides is on another
    host, and if a plan is not enough or can't be undone.
    """
    if len([path for path in (plan, check, apply, undo) if path is not None]) > 1:
        fail("--plan, --check, --apply and --undo: one at a time", exit_codes.USAGE)
    settings = settings_of(config)
    after = length_of(restore_after, "--restore-after") if restore_after else None
    if apply is not None:
        with _Work(settings, apply, command_config) as work:
            work.apply(after, length_of(duration, "--for"))
    elif undo is not None:
        with _Work(settings, undo, command_config) as work:
            work.undo()
    elif check is not None:
        _check(settings, check, command_config)
    elif plan is not None:
        _plan(settings, plan, volume, command_config, option, note_of(duration, reason, actor), after)
    else:
        found = _volume(settings, volume)
        if found is not None:
            _rank(found, _look(settings, found, command_config)[0], as_json)


def _volume(settings: Settings, wanted: str | None) -> ReliefVolume | None:
    found = volume_of(settings, wanted)
    if found is None:
        if (elsewhere := go_elsewhere(settings)) is not None:
            fail(elsewhere)
        typer.echo("no volume of this host is over its soft limit: there is nothing to free")
    return found


def _look(
    settings: Settings, volume: ReliefVolume, command_config: Path | None, plan: Plan | None = None
) -> tuple[ReliefLook, str]:
    """Return a look, and the cluster's id; with a plan, a look at no more than the plan needs."""
    connection = connect(settings, command_config, as_operator=False)
    try:
        cluster = connection.describe_cluster().result()
        if isinstance(cluster, KafkaFailure):
            fail(f"the cluster can't be asked: {cluster.sentence}")
        looked = look(settings, volume, connection)
        here = broker_id_of(settings)
        if plan is None:
            inflow = measure_inflow(volume.observed.log_dirs, connection, here)
            looked = replace(looked, situation=replace(looked.situation, inflow=inflow))
        if plan is None or plan.moves:
            always = plan is not None and plan.steps[0].kind is StepKind.REPLICA_MOVE
            looked = with_others(looked, settings, connection, here, always=always)
        return looked, cluster.cluster_id or ""
    finally:
        connection.close()


def _rank(volume: ReliefVolume, looked: ReliefLook, as_json: bool) -> None:
    situation, known = looked.situation, looked.groups_known
    found = ranked(situation)
    if as_json:
        print_json(
            {
                "volume": volume.observed.name,
                "to_free_bytes": situation.to_free_bytes,
                "options": options_document(found, groups_known=known),
                "notes": _notes(volume, looked, found),
            }
        )
        return
    typer.echo(
        f"volume {volume.observed.name}: {size_text(situation.to_free_bytes)} to free until its soft limit"
    )
    for number, one in enumerate(found[:_MOST_OPTIONS], start=1):
        for line in option_lines(number, one, looked.at, groups_known=known):
            typer.echo(line)
    if not found:
        typer.echo(
            "no option frees anything here: move partitions, delete topics, or enlarge the file system"
        )
    for note in _notes(volume, looked, found):
        typer.echo(f"note: {note}")


def _notes(volume: ReliefVolume, looked: ReliefLook, found: Iterable[Option]) -> list[str]:
    moves = any(one.kind in MOVES for one in found)
    inflow = looked.situation.inflow
    filled = [] if inflow is None else [inflow_text(volume.observed.name, inflow)]
    rates = [f"a move is taken to copy {looked.copy_rate}"] if moves else []
    observed, reserved_bytes = volume.observed, volume.reserved_bytes()
    others = by_hand(looked.situation.partitions, observed.name, observed.fs_type, reserved_bytes)
    return [*filled, *others, *looked.notes, *rates]


def _plan(
    settings: Settings,
    path: Path,
    wanted: str | None,
    command_config: Path | None,
    number: int,
    note: OrderTerms,
    after: timedelta | None,
) -> None:
    volume = _volume(settings, wanted)
    if volume is None:
        return
    if path.exists():
        fail(f"{path} exists: a plan is a new file", exit_codes.USAGE)
    looked, cluster = _look(settings, volume, command_config)
    found: list[Option] = ranked(looked.situation)
    if number > len(found):
        fail(f"--option {number}: there are {len(found)} options", exit_codes.USAGE)
    # Its times count from the look: what was asked since took seconds.
    chosen, now = found[number - 1], looked.at
    loses = [loss_text(step, groups_known=looked.groups_known) for step in chosen.steps]
    made = Plan(
        id=f"{now:%Y%m%dT%H%M%S}-{broker_id_of(settings)}-{secrets.token_hex(2)}",
        author=note.actor,
        reason=note.reason,
        created=now,
        cluster=cluster,
        broker_id=broker_id_of(settings),
        volume=volume.observed.name,
        to_free_bytes=looked.situation.to_free_bytes,
        steps=planned(chosen, dict(enumerate(loses))),
        restore_after=after,
    )
    document = made.to_document()
    if made.moves:
        document |= _save_the_way_back(settings, path, made, command_config)
    _save(path, document)
    for line in option_lines(number, chosen, now, groups_known=looked.groups_known):
        typer.echo(line)
    if not made.moves:
        typer.echo(f"plan {made.id} is in {path}: kquota relief --apply {path}")
        return
    typer.echo(f"plan {made.id} is in {path}, and the way back in {_way_back(path)}:")
    typer.echo(_command(settings, path, made))
    typer.echo(
        "Run it again with --verify in place of --execute until all is complete: this ends a throttle, too."
    )


def _save_the_way_back(
    settings: Settings, path: Path, made: Plan, command_config: Path | None
) -> dict[str, object]:
    """Write the file that has all replicas where they are now; return the one that moves them."""
    connection = connect(settings, command_config, as_operator=False)
    try:
        replicas = connection.replicas_of(topics_of(step.target for step in made.steps))
    finally:
        connection.close()
    if isinstance(replicas, KafkaFailure):
        fail(f"the cluster can't be asked: {replicas.sentence}")
    brokers = {name: one.brokers for name, one in replicas.items()}
    kind, here = made.steps[0].kind, made.broker_id
    try:
        moved = reassignment(kind, {one.target: str(one.to) for one in made.steps}, brokers, here)
    except ValueError as error:
        fail(f"broker {here} has no replica of partition {error} any more")
    back = reassignment(kind, {one.target: str(one.was) for one in made.steps}, brokers, here)
    _save(_way_back(path), back)
    return moved


def _way_back(path: Path) -> Path:
    return path.with_name(f"{path.stem}-back.json")


def _command(settings: Settings, path: Path, plan: Plan) -> str:
    options = settings.librdkafka()
    rate = settings.relief_copy_bytes_per_second if plan.steps[0].kind is StepKind.REPLICA_MOVE else None
    is_plain = options.get("security.protocol", "plaintext").lower() == "plaintext"
    return move_command(options["bootstrap.servers"], str(path), rate, is_plain=is_plain)


def _check(settings: Settings, path: Path, command_config: Path | None) -> None:
    made = _read(path, settings)
    volume = volume_of(settings, made.volume)
    assert volume is not None
    looked, _ = _look(settings, volume, command_config, made)
    result = replayed(looked.situation, [step.to_step() for step in made.steps])
    for line in option_lines(1, result, looked.at, groups_known=looked.groups_known):
        typer.echo(line)
    for note in _notes(volume, looked, [result]):
        typer.echo(f"note: {note}")
    if not result.enough and made.steps[0].kind is not StepKind.THROTTLE:
        missing = size_text(looked.situation.to_free_bytes)
        fail(f"plan {made.id} is not enough: {missing} are to be freed until the soft limit")


class _Work:
    """A plan that is being applied or undone, with its operator."""

    def __init__(self, settings: Settings, path: Path, command_config: Path | None) -> None:
        self._lock = take_relief_lock(settings)  # before the plan is read, which another one may be changing
        plan = _read(path, settings)
        volume = volume_of(settings, plan.volume)
        assert volume is not None
        if plan.moves:
            fail(f"{path} is for Kafka's own tool: {_command(settings, path, plan)}", exit_codes.USAGE)
        self._settings, self._volume, self._path = settings, volume, path
        self._desk = OrderWriter(settings, operator_config(command_config, settings))
        self._connection = connect(settings, command_config, as_operator=True)
        cluster = self._connection.describe_cluster().result()
        if isinstance(cluster, KafkaFailure):
            fail(f"the cluster can't be asked: {cluster.sentence}")
        if cluster.cluster_id != plan.cluster:
            fail(f"{path} is a plan for cluster {plan.cluster}, and this is {cluster.cluster_id}")
        self._run = ReliefRun(
            plan,
            lambda changed: _save(path, changed.to_document()),
            volume.room,
            typer.echo,
            time.sleep,
            lambda: datetime.now(UTC),
            settings=_Topics(self._connection),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._connection.close()

    def apply(self, after: timedelta | None, shown: timedelta) -> None:
        """Apply it; with a time, wait as long and give the values back."""
        run = self._run
        spared = [one for one in run.plan.topics if is_spared(one, self._settings.relief_protected)]
        if spared:
            fail(
                f"nothing was changed: relief leaves topic {spared[0]} alone, which is internal or protected"
            )
        try:
            run.check()
            plan = run.plan
            note = OrderTerms(datetime.now(UTC) + shown, plan.reason, plan.author)
            self._desk.publish(relief_key(plan.id), note.to_document(), plan.author, plan.reason)
            is_enough = run.apply()
        except ReliefStopped as stopped:
            fail(str(stopped))
        if not is_enough and plan.steps[0].kind is not StepKind.THROTTLE:
            missing = size_text(run.room().missing_bytes)
            fail(f"plan {plan.id} is applied, and {missing} are still to free: kquota relief ranks the rest")
        after = after or plan.restore_after
        if after is None:
            typer.echo(f"to give the values back: kquota relief --undo {self._path}")
            return
        typer.echo(f"values go back once the volume has been below its soft limit for {after}")
        run.await_calm(after)
        self._give_back(self._breaching())

    def undo(self) -> None:
        """Give all values back."""
        for topic, sentence in self._breaching().items():
            typer.echo(f"warning: topic {topic}: {sentence}", err=True)
        self._give_back({})

    def _give_back(self, keep: dict[str, str]) -> None:
        run = self._run
        try:
            is_undone = run.undo(keep)
        except ReliefStopped as stopped:
            fail(str(stopped))
        if not is_undone:
            fail(f"not all values of plan {run.plan.id} are back: see {self._path}")
        self._desk.withdraw(relief_key(run.plan.id), "its values are back", run.plan.author)
        typer.echo(f"plan {run.plan.id} is undone")

    def _breaching(self) -> dict[str, str]:
        """Return the topics that would fill the volume to its hard limit again, with sentences."""
        looked = look(self._settings, self._volume, self._connection)
        room_bytes = int(self._volume.hard_bytes) - self._volume.room().consumed_bytes
        within_ms = _REGROWS // timedelta(milliseconds=1)
        return {
            step.target: (
                f"with {step.setting} {step.was} back, it fills the volume to its hard limit again within"
                f" {_REGROWS.days} days, at the rate of late"
            )
            for step in self._run.plan.steps
            if breaches_again(looked.situation, step.to_step(), room_bytes, within_ms)
        }


class _Topics:
    """The settings of the cluster's topics, and the rate of a broker's throttle."""

    def __init__(self, connection: OperatorConnection) -> None:
        self._connection = connection

    def read(self, target: str, name: str) -> TopicSetting | KafkaFailure:
        return self._connection.setting(_kind_of(name), target, name).result()

    def change(
        self, target: str, name: str, value: str | None, *, validate_only: bool = False
    ) -> KafkaFailure | None:
        kind = _kind_of(name)
        return self._connection.alter(kind, target, name, value, validate_only=validate_only).result()


def _kind_of(name: str) -> ResourceType:
    return ResourceType.BROKER if name == THROTTLED_RATE else ResourceType.TOPIC


def _read(path: Path, settings: Settings) -> Plan:
    try:
        plan = plan_from_document(parse_json(path.read_bytes()))
    except OSError as error:
        fail(f"{path} can't be read: {error.strerror}")
    except (InvalidJson, InvalidPlan) as error:
        fail(f"{path} is no relief plan: {error}")
    here = broker_id_of(settings)
    if plan.broker_id != here:
        fail(f"{path} is a plan for broker {plan.broker_id}, and this is the host of broker {here}")
    return plan


def _save(path: Path, document: Mapping[str, object]) -> None:
    try:
        replace_file(path, json.dumps(document, indent=2).encode() + b"\n", _PLAN_MODE)
    except OSError as error:
        fail(f"{path} can't be written: {error.strerror}")
