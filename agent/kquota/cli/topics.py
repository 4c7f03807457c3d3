"""``kquota topics``: thresholds of bytes in for this broker and for single topics."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from kquota.cli import exit_codes
from kquota.cli.output import fail, print_json
from kquota.host.atomic import replace_file
from kquota.quotas.topic_thresholds import (
    InvalidThresholds,
    TopicThresholds,
    parse_rate,
    parse_thresholds,
    thresholds_to_document,
)

topics_app = typer.Typer(
    help="Thresholds of bytes in, for this broker and for single topics.", no_args_is_help=True
)

DEFAULT_FILE = Path("/etc/kquota/topics.json")

FileOption = Annotated[
    Path, typer.Option("--file", help="The file that the broker reads (its property kquota.topics.file).")
]
RateArgument = Annotated[str, typer.Argument(help="Bytes per second: 40M is 40 million, 40Mi is 40 x 2^20.")]
TopicArgument = Annotated[str, typer.Argument(help="The topic's name.")]


@topics_app.command("show")
def show(
    file: FileOption = DEFAULT_FILE,
    as_json: Annotated[bool, typer.Option("--json", help="The file's content, as JSON.")] = False,
) -> None:
    """Show the thresholds, and the rest for the topics without one."""
    thresholds = _read(file)
    if as_json:
        print_json(None if thresholds is None else thresholds_to_document(thresholds))
    elif thresholds is None:
        typer.echo(f"There is no {file}: nothing is held.")
    else:
        rows = [
            ("the broker, in all", thresholds.total_bytes_per_second),
            *thresholds.topics.items(),
            ("all other topics together", thresholds.rest_bytes_per_second),
        ]
        width = max(len(name) for name, _ in rows)
        digits = max(len(f"{rate:,}") for _, rate in rows)
        for name, rate in rows:
            typer.echo(f"{name:<{width}}  {rate:>{digits},} B/s")


@topics_app.command("total")
def total(rate: RateArgument, file: FileOption = DEFAULT_FILE) -> None:
    """Set the broker's threshold, of all topics together."""
    _change(file, lambda present: (present or TopicThresholds(0)).with_total(parse_rate(rate)))


@topics_app.command("set")
def set_topic(topic: TopicArgument, rate: RateArgument, file: FileOption = DEFAULT_FILE) -> None:
    """Set the threshold of one topic."""
    _change(file, lambda present: _existing(present, file).with_topic(topic, parse_rate(rate)))


@topics_app.command("unset")
def unset_topic(topic: TopicArgument, file: FileOption = DEFAULT_FILE) -> None:
    """Remove the threshold of one topic: it shares the rest with the others again."""

    def change(present: TopicThresholds | None) -> TopicThresholds:
        existing = _existing(present, file)
        if topic not in existing.topics:
            allowed = ", ".join(existing.topics) or "none"
            raise InvalidThresholds(f"'{topic}' has no threshold of its own; allowed are {allowed}")
        return existing.without_topic(topic)

    _change(file, change)


@topics_app.command("off")
def off(file: FileOption = DEFAULT_FILE) -> None:
    """Remove the file: no topic is held any more."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        fail(f"{file}: {error.strerror}")


def _existing(present: TopicThresholds | None, file: Path) -> TopicThresholds:
    if present is None:
        raise InvalidThresholds(
            f"there is no {file}; set the broker's threshold first, with kquota topics total"
        )
    return present


def _read(file: Path) -> TopicThresholds | None:
    try:
        return parse_thresholds(file.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        fail(f"{file}: {error.strerror}")
    except InvalidThresholds as error:
        fail(f"{file}: {error}", exit_codes.CONFIGURATION)


def _change(file: Path, change: Callable[[TopicThresholds | None], TopicThresholds]) -> None:
    present = _read(file)
    try:
        changed = change(present)
    except InvalidThresholds as error:
        fail(f"nothing was changed: {error}", exit_codes.USAGE)
    data = json.dumps(thresholds_to_document(changed), indent=2) + "\n"
    try:
        replace_file(file, data.encode("utf-8"))
    except OSError as error:
        fail(f"nothing was changed: {error.filename}: {error.strerror}")
    typer.echo(
        f"{file}: {changed.total_bytes_per_second:,} B/s in all, {changed.rest_bytes_per_second:,} B/s of it "
        f"for topics without a threshold of their own"
    )
