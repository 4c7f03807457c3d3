"""``kquota demo`` and ``kquota playground``: a real cluster on this machine, protected by kquota."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    unprotected: Annotated[
        bool, typer.Option("--unprotected", help="The same load without kquota, to see what happens then.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the files of brokers and agents.")] = False,
) -> None:
    """Run a real three-broker Kafka on loopback whose smallest disk fills, and watch what becomes of it.

    Needs root (for file systems in files), a JDK and Maven. Leaves nothing behind, also after Ctrl-C.
    """
    from kquota.demo.command import run  # noqa: PLC0415 - its packages are an extra

    raise typer.Exit(run(unprotected=unprotected, keep=keep))


def playground(
    directory: Annotated[
        Path, typer.Option(help="Where the agents' configurations and Kafka's tools are to be.")
    ] = Path("build/playground"),
) -> None:
    """Run a real three-broker Kafka on loopback with kquota, to play with, until Ctrl-C.

    Needs what kquota demo needs, and leaves nothing behind either.
    """
    from kquota.demo.command import run_playground  # noqa: PLC0415 - its packages are an extra

    raise typer.Exit(run_playground(directory))
