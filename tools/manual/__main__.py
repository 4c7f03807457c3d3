"""``python -m tools.manual FOLDER``: write kquota.1 and kquota-agent.yml.5 into a folder.

The pages bear the date of SOURCE_DATE_EPOCH (seconds), or today's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tools.configuration.__main__ import EXAMPLE
from tools.manual.command_page import render_command_page
from tools.manual.configuration_page import render_configuration_page


def main(arguments: list[str] | None = None) -> int:
    """Run; return 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.manual", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = datetime.fromtimestamp(seconds, UTC).date().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kquota.1").write_text(render_command_page(date), "utf-8")
    page = render_configuration_page(EXAMPLE.read_text("utf-8"), date)
    (folder / "kquota-agent.yml.5").write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
