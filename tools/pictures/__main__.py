"""``python -m tools.pictures``: take the pictures of terminals in docs/img (see ``make pictures``)."""

from __future__ import annotations

from pathlib import Path

from tools.pictures.demo import photograph_demo

if __name__ == "__main__":
    photograph_demo(Path(__file__).resolve().parents[2] / "docs/img")
