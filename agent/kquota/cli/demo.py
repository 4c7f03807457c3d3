"""``kquota demo``: a real cluster on this machine whose small disk fills."""

from __future__ import annotations

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
