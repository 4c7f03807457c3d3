"""The collection has roles, plays and a module, and none of the Python that only this repository needs."""

from __future__ import annotations

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from tests.unit.repository.tree import REPOSITORY, source_files


def test_no_folder_with_python_of_ours_is_in_the_collection() -> None:
    ignored = yaml.safe_load((REPOSITORY / "galaxy.yml").read_text("utf-8"))["build_ignore"]
    # Filters and the like, next to roles and plays.
    of_collection = {"extensions", "playbooks", "plugins", "roles"}
    folders = {path.relative_to(REPOSITORY).parts[0] for path in source_files("*.py")}
    assert {"agent", "conformance", "testbed"} <= folders
    assert folders - of_collection <= set(ignored)


@pytest.mark.parametrize(
    ("version", "is_admitted"),
    [
        *((version, False) for version in ("2.14.18", "2.16.13", "2.17.6", "2.17.14", "2.18.0")),
        *((version, True) for version in ("2.16.14", "2.16.19", "2.18.1", "2.19.0", "2.20.3")),
    ],
)
def test_releases_of_ansible_that_run_templates_of_hosts_are_not_admitted(
    version: str, is_admitted: bool
) -> None:
    runtime = yaml.safe_load((REPOSITORY / "meta/runtime.yml").read_text("utf-8"))
    assert SpecifierSet(runtime["requires_ansible"]).contains(version) is is_admitted


def test_roles_and_documents_name_the_same_release_of_ansible() -> None:
    least = "2.16.14"
    roles = {
        path: yaml.safe_load(path.read_text("utf-8")) for path in REPOSITORY.glob("roles/*/meta/main.yml")
    }
    assert {
        path: role["galaxy_info"]["min_ansible_version"] for path, role in roles.items()
    } == dict.fromkeys(roles, least)
    for name in ("docs/fleet.md", "docs/support.md"):
        assert f"ansible-core {least}" in (REPOSITORY / name).read_text("utf-8")
