"""The page of commands: ``kquota`` and ``kquota-pipeline``, as in --help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from kquota.cli.main import application as kquota_application
from tools.reference.markdown import code, head, sentence, table

EXIT_CODES = {
    "0": "Success.",
    "1": "It was tried and did not work.",
    "2": "The request makes no sense.",
    "78": "The configuration is refused.",
}


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
    lines += _command(root, context)
    for command, inner in sorted(leaves(root, context), key=lambda found: found[1].command_path):
        lines += _command(command, inner)
    return "\n".join(lines)


def leaves(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each command that does something, with its context, groups taken apart."""
    for name, command in group.commands.items():
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(command, "commands"):
            yield from leaves(command, inner)
        else:
            yield command, inner


def _command(command: Any, context: Any) -> list[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"## {context.command_path}", "", "```text", usage, "```", ""]
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        lines += [sentence(paragraph), ""]
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    options = [(tag, text) for tag, text in (record for record in records if record) if tag != "--help"]
    if options:
        lines += table(["option", "meaning"], [[code(tag), sentence(text or "")] for tag, text in options])
    return lines
