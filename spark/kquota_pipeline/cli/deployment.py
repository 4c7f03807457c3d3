"""`jars` and `archive`: the inputs of spark-submit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kquota_pipeline.archive import write_archive, write_program
from kquota_pipeline.cli.options import fail, say
from kquota_pipeline.jars import JarsUnavailable, ensure_jars, fetch_jars

FolderOption = Annotated[Path | None, typer.Option("--to", help="Folder to make, instead of the cache.")]


def jars(to: FolderOption = None) -> None:
    """Fetch the jars that Spark lacks with Maven, and print their paths, one a line (for --jars)."""
    try:
        if to is None:
            paths = ensure_jars(say)
        else:
            if to.exists():
                fail(f"{to} is there already; name a folder to make")
            fetch_jars(to)
            paths = sorted(to.glob("*.jar"))
    except JarsUnavailable as error:
        fail(str(error))
    for path in paths:
        typer.echo(path)


def archive(
    to: Annotated[Path, typer.Option("--to", help="The folder to write into.", file_okay=False, exists=True)],
) -> None:
    """Write kquota_pipeline.zip (for --py-files) and run_kquota_pipeline.py, and print their paths."""
    typer.echo(write_archive(to))
    typer.echo(write_program(to))
