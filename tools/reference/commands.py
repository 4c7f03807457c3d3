"""The page of commands: ``kquota`` as in --help, by typer's own writer of documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from kquota.cli.main import application as kquota_application
from tools.reference.markdown import code, head, table

EXIT_CODES = {
    "0": "Success.",
    "1": "The command tried, and failed.",
    "2": "The request makes no sense.",
    "78": "The configuration is refused.",
}
# Every command has --help, and a section of its own.
_LEFT_OUT = re.compile(
    r"\* `--help`: .*\n|\*\*Commands\*\*:\n\n(\* .*\n)+|\*\*Options\*\*:\n\n(?=\* `--help`.*\n\n)"
)


def commands_page(_repository: Path) -> str:
    """Return docs/command-line.md."""
    lines = head(
        "Command line",
        "`kquota` is on every host with an agent, and finds the agent's configuration by itself. The manual"
        " page `kquota(1)`, which the package installs, has the same content; the pipeline's commands are in"
        " [the pipeline](pipeline.md).",
        origin="the commands' definitions",
    )
    rows = [[code(exit_code), meaning] for exit_code, meaning in EXIT_CODES.items()]
    lines += table(["exit code", "meaning"], rows)
    lines += ["`kquota check` has those of monitoring plug-ins: 0 ok, 1 warning, 2 critical, 3 unknown.", ""]
    root: Any = typer.main.get_command(kquota_application())
    context = root.make_context("kquota", [], resilient_parsing=True)
    documents = _LEFT_OUT.sub("", get_docs_for_click(obj=root, ctx=context, name="kquota"))
    return "\n".join([*lines, re.sub(r"\n{3,}", "\n\n", f"#{documents.strip()}\n")])
