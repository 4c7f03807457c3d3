"""``python -m tools.manual FOLDER``: write kquota.1 and kquota-agent.yml.5, from the pages of reference.

The pages bear the date of SOURCE_DATE_EPOCH (seconds), or today's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from kquota.cli.main import COMMANDS
from tools.manual.page import manual_page
from tools.reference.commands import commands_page
from tools.reference.configuration import configuration_page

REPOSITORY = Path(__file__).resolve().parents[2]
FILES = {
    "/etc/kquota/agent.yml": "The agent's configuration: see kquota-agent.yml(5).",
    "/etc/kquota/NAME.yml": "The configuration of kquota-agent@NAME, with several brokers on a host.",
    "/run/kquota/decision.json": "The decision, read by the broker's plug-in.",
    "/run/kquota-broker/applied.json": "The state that the plug-in applies, read by the agent.",
    "/var/lib/kquota": "The agent's memory across restarts.",
}


def pages(date: str) -> dict[str, str]:
    """Return the text of each page by its file name; ``date`` is an ISO date."""
    summary = COMMANDS.help[0].lower() + COMMANDS.help[1:].rstrip(".")
    commands = manual_page(
        commands_page(REPOSITORY),
        "kquota",
        1,
        summary=summary,
        date=date,
        files=FILES,
        see_also="kquota-agent.yml(5), systemctl(1), journalctl(1)",
    )
    configuration = manual_page(
        configuration_page(REPOSITORY),
        "kquota-agent.yml",
        5,
        summary="configuration of the kquota agent",
        date=date,
        files={},
        see_also="kquota(1), systemd.exec(5)",
    )
    return {"kquota.1": commands, "kquota-agent.yml.5": configuration}


def main(arguments: list[str] | None = None) -> int:
    """Run; return 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.manual", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(datetime.fromtimestamp(seconds, UTC).date().isoformat()).items():
        (folder / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
