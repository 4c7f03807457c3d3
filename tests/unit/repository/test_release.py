"""The requirements of a release."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tools.release.collection import put_in_order


def test_a_collection_s_files_are_listed_in_the_same_order_everywhere(tmp_path: Path) -> None:
    manifests = []
    for names in (["b", "a", "c/d"], ["c/d", "b", "a"]):
        files = json.dumps({"files": [{"name": name} for name in names], "format": 1})
        (tmp_path / "FILES.json").write_text(files, "utf-8")
        manifest = {"file_manifest_file": {"name": "FILES.json", "chksum_sha256": "old"}, "format": 1}
        (tmp_path / "MANIFEST.json").write_text(json.dumps(manifest), "utf-8")
        put_in_order(tmp_path)
        manifests.append((tmp_path / "MANIFEST.json").read_text("utf-8"))
    assert manifests[0] == manifests[1]
    checksum = hashlib.sha256((tmp_path / "FILES.json").read_bytes()).hexdigest()
    assert json.loads(manifests[0])["file_manifest_file"]["chksum_sha256"] == checksum
    assert [entry["name"] for entry in json.loads((tmp_path / "FILES.json").read_text())["files"]] == [
        "a",
        "b",
        "c/d",
    ]
