"""``python -m tools.pictures [demo|pages]``: take the pictures in docs/img anew (see ``make pictures``)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.pictures.demo import photograph_demo
from tools.pictures.pages import photograph_page

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGES = REPOSITORY / "docs/img"
PAGES = {
    "site-home.png": REPOSITORY / "build/site/docs/index.html",
    "site-reference.png": REPOSITORY / "build/site/docs/configuration.html",
}
REPORT = "pipeline-report.png"


def main(arguments: list[str] | None = None) -> int:
    """Run; return 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("what", choices=["demo", "pages"], nargs="*", default=["demo", "pages"])
    parser.add_argument("--report", type=Path, help="a report of the pipeline, to be photographed, too")
    chosen = parser.parse_args(arguments)
    if "demo" in chosen.what:
        photograph_demo(IMAGES)
    if "pages" in chosen.what:
        for name, page in PAGES.items():
            photograph_page(page, IMAGES / name)
        if chosen.report is not None:
            photograph_page(chosen.report, IMAGES / REPORT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
