"""kquota(1): every command with its options, as --help tells them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

import kquota
from kquota.cli.main import application
from tools.manual import roff

_FILES = {
    "/etc/kquota/agent.yml": "The agent's configuration: see kquota-agent.yml(5).",
    "/etc/kquota/NAME.yml": "The configuration of kquota-agent@NAME, with several brokers on a host.",
    "/run/kquota/decision.json": "The decision, read by the broker's plug-in.",
    "/run/kquota-broker/applied.json": "What the plug-in does, read by the agent.",
    "/var/lib/kquota": "What the agent remembers across restarts.",
}
EXIT_CODES = {
    "0": "Success.",
    "1": "It was tried and did not work.",
    "2": "The request makes no sense.",
    "78": "The configuration is refused.",
}
_CHECK = (
    "kquota check has the exit codes of monitoring plug-ins instead: 0 ok, 1 warning, 2 critical, 3 unknown."
)


def render_command_page(date: str) -> str:
    """Return kquota(1) as man(7) text; ``date`` is an ISO date."""
    root: Any = typer.main.get_command(application())
    context = root.make_context("kquota", [], resilient_parsing=True)
    summary = str(root.help).rstrip(".")
    lines = [
        *roff.title("kquota", 1, kquota.__version__, date),
        roff.heading("Name"),
        f"kquota \\- {roff.text(summary[0].lower() + summary[1:])}",
        roff.heading("Synopsis"),
        "\\fBkquota\\fP \\fIcommand\\fP [\\fIoptions\\fP]",
        roff.heading("Options"),
        *_options(root, context),
        roff.heading("Commands"),
    ]
    for command, command_context in leaves(root, context):
        usage = " ".join(command.collect_usage_pieces(command_context))
        lines.append(roff.subheading(f"{command_context.command_path} {usage}"))
        lines += roff.paragraphs(blocks(command.help))
        lines += _options(command, command_context)
    lines.append(roff.heading("Exit status"))
    for code, meaning in EXIT_CODES.items():
        lines += roff.item(code, [meaning])
    lines += [".PP", roff.text(_CHECK), roff.heading("Files")]
    for file, meaning in _FILES.items():
        lines += roff.item(file, [meaning])
    lines += [
        roff.heading("See also"),
        "\\fBkquota\\-agent.yml\\fP(5), \\fBsystemctl\\fP(1), \\fBjournalctl\\fP(1)",
    ]
    return "\n".join(lines) + "\n"


def leaves(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each command that does something, with its context, groups taken apart."""
    for name, command in group.commands.items():
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(command, "commands"):
            yield from leaves(command, inner)
        else:
            yield command, inner


def _options(command: Any, context: Any) -> list[str]:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    lines: list[str] = []
    for tag, explanation in (record for record in records if record):
        lines += roff.item(tag, [explanation or ""])
    return lines


def blocks(help_text: str | None) -> list[str]:
    """Return the paragraphs of a command's help."""
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", help_text or "") if block.strip()]
