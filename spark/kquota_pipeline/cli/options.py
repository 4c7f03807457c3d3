"""The options that several commands have, and how a command ends with an error."""

from __future__ import annotations

import sys
from datetime import date, timedelta
from typing import Annotated, NoReturn

import typer

from kquota.formats.strict_json import printable
from kquota_pipeline.session import FIXED

FAILED = 1

TablesOption = Annotated[
    str,
    typer.Option(
        "--tables",
        envvar="KQUOTA_PIPELINE_TABLES",
        help="URI of the folder that holds the tables, such as file:/var/lib/kquota-pipeline/tables or s3a://bucket/kquota.",
    ),
]
CheckpointOption = Annotated[
    str,
    typer.Option(
        "--checkpoint",
        envvar="KQUOTA_PIPELINE_CHECKPOINT",
        help="URI of the folder where Spark notes its progress; these tables' own.",
    ),
]
SparkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--spark",
        envvar="KQUOTA_PIPELINE_SPARK",
        metavar="KEY=VALUE",
        help="A setting of Spark's, such as spark.master=spark://host:7077; may be given several times.",
    ),
]


def spark_settings(given: list[str] | None) -> dict[str, str]:
    """Return the settings given as KEY=VALUE."""
    settings = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            raise typer.BadParameter(f"{text!r} is not spark.KEY=VALUE", param_hint="--spark")
        if value != FIXED.get(key, value):
            raise typer.BadParameter(f"{key} can only be {FIXED[key]}, not {value!r}", param_hint="--spark")
        settings[key] = value
    return settings


def day_named(text: str, today: date, option: str) -> date:
    """Return the UTC day that an option names: a day, or a number of days ago (30d)."""
    try:
        if text.endswith("d"):
            return today - timedelta(days=int(text.removesuffix("d")))
        return date.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is neither YYYY-MM-DD nor 30d", param_hint=option) from None


def readable(text: str) -> str:
    """Return a text fit for a terminal: names come from clients. Figures have no-break spaces, which stay."""
    return "\N{NO-BREAK SPACE}".join(printable(part) for part in text.split("\N{NO-BREAK SPACE}"))


def say(message: str) -> None:
    """Report progress on standard error: standard output is for results. Names in it are `readable`, so that
    none begins a line of its own.
    """
    lines = "\n".join(readable(line) for line in message.split("\n"))
    sys.stderr.write(f"{lines}\n")
    sys.stderr.flush()


def fail(message: str, exit_code: int = FAILED) -> NoReturn:
    """Report an error on standard error and end with the code."""
    say(f"kquota-pipeline: {message}")
    raise typer.Exit(exit_code)
