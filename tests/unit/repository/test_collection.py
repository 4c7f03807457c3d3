"""The collection has roles and plays, and none of the Python that only this repository needs."""

from __future__ import annotations

import yaml

from tests.unit.repository.tree import REPOSITORY, source_files


def test_no_folder_with_python_of_ours_is_in_the_collection() -> None:
    ignored = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text("utf-8"))["build_ignore"]
    of_collection = {"extensions", "playbooks", "roles"}  # filters and the like, next to roles and plays
    folders = {path.relative_to(REPOSITORY).parts[0] for path in source_files("*.py")}
    assert {"agent", "conformance", "testbed"} <= folders
    assert folders - of_collection <= set(ignored)
