"""The page of commands: ``kquota`` and ``kquota-pipeline``, as --help tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from kquota.cli.main import application as kquota_application
from tools.manual.command_page import EXIT_CODES, blocks, leaves
from tools.reference.markdown import code, head, sentence, table


def commands_page(_repository: Path) -> str:
    """Return docs/command-line.md."""
    lines = head(
        "Command line",
        "`kquota` is on every host with an agent, and finds the agent's configuration by itself. The manual"
        " page `kquota(1)`, which the package installs, has the same content; the pipeline's commands are in"
        " [the pipeline](pipeline.md).",
        origin="the commands' definitions",
    )
    lines += table(
        ["exit code", "meaning"], [[code(exit_code), meaning] for exit_code, meaning in EXIT_CODES.items()]
    )
    lines += ["`kquota check` has those of monitoring plug-ins: 0 ok, 1 warning, 2 critical, 3 unknown.", ""]
    root: Any = typer.main.get_command(kquota_application())
    context = root.make_context("kquota", [], resilient_parsing=True)
    for command, inner in sorted(leaves(root, context), key=lambda found: found[1].command_path):
        lines += _command(command, inner)
    return "\n".join(lines)


def _command(command: Any, context: Any) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## {context.command_path}", "", "```text", usage, "```", ""]
    lines += [line for block in blocks(command.help) for line in (sentence(block), "")]
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    options = [(tag, text) for tag, text in (record for record in records if record) if tag != "--help"]
    if options:
        lines += table(["option", "meaning"], [[code(tag), sentence(text or "")] for tag, text in options])
    return lines
