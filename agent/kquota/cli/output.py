"""The output of the commands, and how they end with an error."""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from typing import NoReturn

import typer

from kquota.cli import exit_codes


def print_json(document: object) -> None:
    """Print one JSON document, indented; in ASCII, which every locale can write and no terminal obeys."""
    sys.stdout.write(json.dumps(document, indent=2, default=_number) + "\n")


def fail(message: str, exit_code: int = exit_codes.FAILED) -> NoReturn:
    """Report an error on standard error and end with the code."""
    sys.stderr.write(f"kquota: {message}\n")
    raise typer.Exit(exit_code)


def _number(value: object) -> float:
    """Numbers read exactly from a file or a record are shown as JSON numbers."""
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
