"""Runs the tests in streams side by side: python -m tools.streams [STREAM…]; all of them by default.

STREAM_CORES says how many cores to use: 1 runs one stream after the other. With CI=true, everything that the
streams print is printed, too, when each has ended; otherwise what those print that fail.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tools.streams.plan import chosen
from tools.streams.run import Run
from tools.streams.schedule import available_cores


def main(arguments: Sequence[str]) -> int:
    """Run them; 0, if all have ended well."""
    try:
        streams = chosen(arguments)
        cores = float(os.environ.get("STREAM_CORES") or available_cores())
    except (KeyError, ValueError) as wrong:
        print(f"python -m tools.streams [STREAM…], STREAM_CORES=NUMBER: {wrong.args[0]}", file=sys.stderr)
        return 2
    return Run(streams, cores=cores, show_all=os.environ.get("CI") == "true").run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
