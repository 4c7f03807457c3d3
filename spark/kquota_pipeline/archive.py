"""This package and its parts of kquota as one .zip, which is what Spark's executors can import from."""

from __future__ import annotations

import zipfile
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

# Of kquota only what the pipeline imports: executors have neither the other requirements nor a use for them.
_PARTS = ("__init__.py", "lazy_commands.py", "policy", "formats", "disks", "retention")
_TREES = (("kquota", _PARTS), ("kquota_pipeline", ()))
ARCHIVE_NAME = "kquota_pipeline.zip"
_LEFT_OUT = ("__pycache__", ".pyc")
# The same sources give the same bytes.
_TIME = (1980, 1, 1, 0, 0, 0)


_PROGRAM = """from kquota_pipeline.__main__ import main

main()
"""


def write_program(folder: Path) -> Path:
    """Write `run_kquota_pipeline.py`, the program that spark-submit needs in addition to the archive."""
    target = folder / "run_kquota_pipeline.py"
    target.write_text(_PROGRAM, encoding="utf-8")
    return target


def write_archive(folder: Path) -> Path:
    """Write ARCHIVE_NAME into a folder and return its path."""
    target = folder / ARCHIVE_NAME
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package, only in _TREES:
            root = files(package)
            for entry in sorted(root.iterdir(), key=lambda entry: entry.name):
                if not only or entry.name in only:
                    _add(archive, entry, package)
    return target


def _add(archive: zipfile.ZipFile, entry: Traversable, parent: str) -> None:
    name = f"{parent}/{entry.name}"
    if name.endswith(_LEFT_OUT):
        return
    if entry.is_dir():
        for child in sorted(entry.iterdir(), key=lambda child: child.name):
            _add(archive, child, name)
        return
    archive.writestr(zipfile.ZipInfo(name, _TIME), entry.read_bytes(), zipfile.ZIP_DEFLATED)
