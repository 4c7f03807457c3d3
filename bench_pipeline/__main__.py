"""``make bench-spark``: generate, measure in lanes, and write docs/bench-spark.md. ``--full`` takes ten
times the days.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_pipeline.data import make
from bench_pipeline.page import Figure, claims, page

ROOT = Path(__file__).parents[1]
DAYS, FULL_DAYS = 3, 30
_WORKS = ("tick replay", "32 policies", "regression")


def main() -> int:
    """Measure, print and write; 1 where the engines disagree, 0 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m bench_pipeline", description=__doc__)
    parser.add_argument("--full", action="store_true", help="30 days, 690 million samples, instead of 3")
    parser.add_argument("--folder", type=Path, help="where to put the data, which is removed afterwards")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/bench-spark.md", help="the page to write")
    arguments = parser.parse_args()
    days = FULL_DAYS if arguments.full else DAYS
    with tempfile.TemporaryDirectory(prefix="kquota-bench-", dir=arguments.folder) as folder:
        _say(f"making {days} days of samples")
        rows = make(Path(folder), days)
        _say(f"{rows:,} samples are there")
        half = max(1, days // 2)
        figures = [
            *_lane("spark", 2, folder, days, *_WORKS),
            *_lane("duckdb", 2, folder, days, *_WORKS),
            *_lane("spark", 2, folder, half, "tick replay"),
            *_lane("spark", 1, folder, days, "tick replay"),
        ]
    rows_of = {day: rows // days * day for day in (half, days)}
    verdicts = claims(figures, rows_of, days, half)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    text = page(figures, verdicts, rows_of, date, len(os.sched_getaffinity(0)))
    arguments.page.write_text(text, "utf-8")
    sys.stdout.write(text)
    return 0 if all(verdict.holds for verdict in verdicts if verdict.must) else 1


def _lane(engine: str, cores: int, folder: str, days: int, *works: str) -> list[Figure]:
    _say(f"{engine} on {cores} cores, {days} days: {', '.join(works)}")
    command = [sys.executable, "-m", "bench_pipeline.lane", engine, str(cores), folder, str(days), *works]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    return [Figure(**json.loads(line)) for line in found.stdout.splitlines() if line.startswith("{")]


def _say(message: str) -> None:
    sys.stderr.write(message + "\n")


if __name__ == "__main__":
    sys.exit(main())
