"""Files that are made from the code: written again, or with --check only checked to be fresh."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def asked_only_to_check(program: str, description: str | None, arguments: list[str] | None = None) -> bool:
    """Read a command line that knows the option --check and nothing else."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when something is stale")
    check: bool = parser.parse_args(arguments).check
    return check


def kept_fresh(path: Path, text: str, *, check: bool, command: str) -> bool:
    """Write the file if it is stale; with ``check`` report that instead, and the command that writes it.

    Returns:
        Whether it is fresh now.
    """
    if path.is_file() and path.read_text("utf-8") == text:
        return True
    if check:
        print(f"{path.name} is stale: run `{command}`.", file=sys.stderr)
        return False
    path.write_text(text, "utf-8")
    return True
