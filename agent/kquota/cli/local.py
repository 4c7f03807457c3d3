"""``kquota decision``, ``volumes`` and ``config``: this host's knowledge, without asking the cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table

from kquota.cli import exit_codes
from kquota.cli.config_init import config_init
from kquota.cli.configuration import (
    DEFAULT_CONFIG,
    ConfigOption,
    JsonOption,
    broker_id_of,
    broker_of,
    settings_of,
)
from kquota.cli.local_state import local_document, local_notes
from kquota.cli.output import fail, print_json
from kquota.cli.topic_sizes import contents_document, show_expiry, show_topics
from kquota.disks.broker_dirs import with_broker_dirs
from kquota.disks.broker_process import find_broker
from kquota.disks.identity import remembered_from_json, remembered_to_json
from kquota.disks.observation import Observation, VolumeObservation, with_offline
from kquota.disks.server_properties import BrokerProperties
from kquota.disks.volume_limits import bound_from_json, refuse_limits
from kquota.disks.volume_watch import VolumeWatch
from kquota.display.console import console_for_people
from kquota.display.figures import size_text
from kquota.formats.strict_json import printable
from kquota.guard.agent_state import FILE_NAME, AgentStateFile
from kquota.guard.applied_state import AppliedState, read_applied_state
from kquota.host.boot_clock import BootClock
from kquota.kafka.client import look_at_properties
from kquota.kafka.config import ClientProperties, ConfigurationError
from kquota.service.web_access import look_at_web_config
from kquota.settings import Settings, SettingsError
from kquota.trust.signing import signing_warnings, verifier_of

config_app = typer.Typer(help="Write, check or show the agent's configuration.", no_args_is_help=True)
config_app.command("init")(config_init)
_LOOK_SECONDS = 6.0
_TOPICS_SECONDS = 2.0
_MAX_TOPICS = 20
_SHOWN = (
    *("volume_id", "mount_point", "fs_type", "log_dirs", "limits_path", "role", "status", "reason"),
    *("topics", "capacity_bytes", "consumed_bytes"),
)


def decision(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Show this broker's decision file, its lease, and what the plug-in applies.

    Exits with 1 if there is no decision whose lease runs.
    """
    settings = settings_of(config)
    local = local_document(settings, broker_id_of(settings))
    found = local["decision"]
    if as_json:
        print_json(local)
    else:
        if found is not None:
            typer.echo(found["sentence"])
        for note in local_notes(local):
            typer.echo(note)
    if found is None or not local["lease_seconds_left"]:
        raise typer.Exit(exit_codes.FAILED)


def volumes(
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the volumes the log dirs are on now as the right ones.")
    ] = False,
    topics: Annotated[
        bool, typer.Option("--topics", help="Show the topics on them, and when their bytes leave instead.")
    ] = False,
) -> None:
    """Show what this broker's log dirs resolve to: mount, volume, topics, sizes, limits.

    With --topics, show the agent's last look at the segments: the largest topics, and how many bytes leave by
    themselves until when.

    Exits with 1 if a volume has failed, or a path of limits.volumes is for none. After --accept reload the
    agent: systemctl reload kquota-agent.
    """
    settings = settings_of(config)
    if topics:
        document = contents_document(settings)
        if as_json:
            print_json(document)
        else:
            console = console_for_people()
            show_expiry(console, document)
            show_topics(console, document, _MAX_TOPICS)
        return
    properties = broker_of(settings)
    state_file = AgentStateFile(settings.state_dir / FILE_NAME)
    seen = look_at_volumes(settings, properties, state_file, accept=accept, topics_seconds=_TOPICS_SECONDS)
    if as_json:
        print_json([_volume_document(volume, settings) for volume in seen.volumes])
    else:
        _print_volumes(seen, settings)
    if seen.limits_problems or any(volume.status != "ok" for volume in seen.volumes):
        raise typer.Exit(exit_codes.FAILED)


@config_app.command("check")
def config_check(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Check agent.yml, the files and librdkafka properties that it names, and server.properties; report all
    problems.

    Exits with 78 if the agent could not start with them.
    """
    settings = settings_of(config)
    properties = broker_of(settings)
    broker_id = broker_id_of(settings)
    warnings = list(settings.warnings())
    try:
        if (problem := look_at_properties(ClientProperties(settings.librdkafka(), broker_id))) is not None:
            warnings.append(problem)
        verifier_of(settings)
        warnings += signing_warnings(settings, broker_id, datetime.now(UTC))
        if settings.metrics.web_config_file is not None:
            look_at_web_config(settings.metrics.web_config_file)
        if settings.limits.volumes:
            seen = look_at_volumes(settings, properties, AgentStateFile(settings.state_dir / FILE_NAME))
            refuse_limits(settings, seen.limits_problems)
            warnings += seen.warnings
    except (ConfigurationError, SettingsError) as error:
        fail(str(error), exit_codes.CONFIGURATION)
    except OSError as error:
        fail(str(error))
    for warning in warnings:
        typer.echo(f"warning: {warning}")
    directories = ", ".join(printable(str(path)) for path in properties.directories)
    typer.echo(f"{config} is good: broker {broker_id}, directories {directories}")


@config_app.command("show")
def config_show(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Show every setting as it is in force, defaults included, secrets hidden."""
    document = settings_of(config).redacted()
    if as_json:
        print_json(document)
    else:
        typer.echo(yaml.safe_dump(document, sort_keys=False), nl=False)


def look_at_volumes(
    settings: Settings,
    properties: BrokerProperties,
    state_file: AgentStateFile,
    *,
    accept: bool = False,
    topics_seconds: float = 0.0,
) -> Observation:
    """Look at the volumes once, with the agent's memory; accepted volumes become its memory.

    ``topics_seconds`` is how long to wait for the topics on them at most.
    """
    state, problem = state_file.load()
    if accept and problem is not None:
        fail(problem)
    try:
        remembered = remembered_from_json(state.remembered_volumes)
    except ValueError:
        remembered = {}
    with VolumeWatch(
        properties,
        limits=settings.limits,
        remembered=remembered,
        bound={} if accept else bound_from_json(state.bound_limits),
        hang_seconds=settings.hang_seconds,
        scope=settings.scope,
    ) as watch:
        watch.wait_for_samples(settings.hang_seconds + _LOOK_SECONDS)
        if accept:
            watch.accept()
        watch.wait_for_topics(topics_seconds)
        seen = watch.observe()
        applied = read_applied_state(
            settings.applied_file, BootClock().now(), broker_id=broker_id_of(settings)
        )
        known = applied if isinstance(applied, AppliedState) else None
        used = {} if known is None else known.log_dir_places
        seen = with_broker_dirs(seen, watch.looks, used or watch.used_by(find_broker(properties)))
        seen = with_offline(seen, () if known is None else known.offline_log_dirs)
    if accept:
        accepted = replace(
            state, remembered_volumes=remembered_to_json(watch.remembered), bound_limits=dict(watch.bound)
        )
        try:
            state_file.save(accepted)
        except OSError as error:
            fail(f"the state file {state_file.path} can't be written: {error.strerror}")
    return seen


def _volume_document(volume: VolumeObservation, settings: Settings) -> dict[str, Any]:
    bounds = None
    if volume.capacity_bytes is not None:
        bounds = settings.limits.pair(volume.limits_path).bounds(volume.capacity_bytes)
    document: dict[str, Any] = {"volume": volume.name}
    document |= {name: getattr(volume, name) for name in _SHOWN}
    return document | {
        "soft_bytes": None if bounds is None else int(bounds.soft_bytes),
        "hard_bytes": None if bounds is None else int(bounds.hard_bytes),
        "inodes": None if volume.inodes is None else volume.inodes._asdict(),
    }


def _print_volumes(seen: Observation, settings: Settings) -> None:
    console = console_for_people()
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold dim")
    for title, right in (
        ("VOLUME", False), ("MOUNT POINT", False), ("TYPE", False), ("TOPICS", True), ("SIZE", True),
        ("USED", True), ("SOFT", True), ("HARD", True), ("INODES FREE", True), ("STATUS", False),
    ):  # fmt: skip
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for volume in seen.volumes:
        document = _volume_document(volume, settings)
        sizes = [
            "-" if document[key] is None else size_text(document[key])
            for key in ("capacity_bytes", "consumed_bytes", "soft_bytes", "hard_bytes")
        ]
        topics = "-" if volume.topics is None else str(len(volume.topics))
        status = volume.status if volume.role == "data" else f"{volume.status}, {volume.role}"
        inodes = "-" if volume.inodes is None else f"{volume.inodes.free / volume.inodes.total:.0%}"
        mount_point = printable(volume.mount_point)
        table.add_row(volume.name, mount_point, volume.fs_type, topics, *sizes, inodes, status)
    console.print(table)
    for volume in seen.volumes:
        console.print(f"{volume.name}: {', '.join(map(printable, volume.log_dirs))}", soft_wrap=True)
        if volume.reason is not None:
            console.print(f"{volume.name} is {volume.status}: {printable(volume.reason)}", style="red")
    for warning in seen.warnings:
        console.print(f"warning: {printable(warning)}", style="yellow")
