"""``python3 leave_out.py LIST FOLDER``: remove from a folder of Python packages what a list of globs names.

Each RECORD then lists what is there. Runs on the Python of any Debian suite, without other packages.
"""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path


def leave_out(listed: str, folder: Path) -> None:
    """Remove what the first word of each line matches.

    Raises:
        SystemExit: a glob matches nothing, and so leaves out nothing.
    """
    globs = [line.split()[0] for line in listed.splitlines() if line.strip() and not line.startswith("#")]
    for glob in globs:
        found = list(folder.glob(glob))
        if not found:
            raise SystemExit(f"{glob} matches nothing in {folder}: remove it from the list, or correct it")
        for path in found:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    for record in folder.glob("*.dist-info/RECORD"):
        lines = record.read_text("utf-8").splitlines(keepends=True)
        kept = [
            line for line, row in zip(lines, csv.reader(lines), strict=True) if (folder / row[0]).exists()
        ]
        record.write_text("".join(kept), "utf-8")


if __name__ == "__main__":
    leave_out(Path(sys.argv[1]).read_text("utf-8"), Path(sys.argv[2]))
