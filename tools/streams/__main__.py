"""Runs the tests in streams side by side: those of every change, or, with --long, the campaigns.

STREAM_CORES says how many cores to use: 1 runs one stream after the other. With CI=true, everything that the
streams print is printed, too, when each has ended; otherwise what those print that fail.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tools.streams.campaigns import campaigns
from tools.streams.every_change import every_change
from tools.streams.run import Run
from tools.streams.schedule import available_cores


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; 0, if all have ended well."""
    parser = argparse.ArgumentParser(prog="python -m tools.streams", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="STREAM", help="by default all of them")
    parser.add_argument("--long", action="store_true", help="the campaigns that take minutes each")
    asked = parser.parse_args(arguments)
    plan = campaigns() if asked.long else every_change()
    try:
        streams = plan.chosen(asked.names)
    except KeyError as unknown:
        parser.error(unknown.args[0])
    try:
        cores = float(os.environ.get("STREAM_CORES") or available_cores())
    except ValueError:
        parser.error(f"STREAM_CORES={os.environ['STREAM_CORES']} is no number of cores")
    return Run(streams, cores=cores, records=plan.records, show_all=os.environ.get("CI") == "true").run()


if __name__ == "__main__":
    sys.exit(main())
