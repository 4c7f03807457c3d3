"""``python3 collection.py FOLDER``: give an unpacked Ansible collection an order that is the same everywhere.

Ansible lists its files in the order in which the file system has them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path


def put_in_order(folder: Path) -> None:
    """Sort FILES.json by name, and write its new checksum to MANIFEST.json."""
    files, manifest = folder / "FILES.json", folder / "MANIFEST.json"
    listed = json.loads(files.read_text("utf-8"))
    listed["files"].sort(key=lambda entry: entry["name"])
    files.write_text(json.dumps(listed, indent=1), "utf-8")
    document = json.loads(manifest.read_text("utf-8"))
    document["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(files.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(document, indent=1), "utf-8")


if __name__ == "__main__":
    put_in_order(Path(sys.argv[1]))
