"""No key, metric, option or column of the last release is gone, by the record schemas/contracts.json."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import kquota
from tests.unit.repository.tree import REPOSITORY
from tools.contracts import RECORD, broken, present_contracts

STATUS, METRICS = "schemas/status.schema.json", "docs/metrics.md"


def record() -> dict[str, Any]:
    return dict(json.loads((REPOSITORY / RECORD).read_text("utf-8")))


def test_the_last_release_s_promises_are_kept() -> None:
    kept = broken(record(), present_contracts(), kquota.__version__)
    assert kept == [], "keep it, or raise the major version and run python -m tools.contracts"


def test_every_contract_is_in_the_list_of_contracts() -> None:
    present = present_contracts()
    assert all(present.values())
    for name in present:
        folder, _, file = name.partition("/")
        page = REPOSITORY / ("docs/contracts.md" if folder == "docs" else "schemas/README.md")
        assert f"]({file})" in page.read_text("utf-8"), f"{page} does not list {name}"


@pytest.mark.parametrize(
    ("file", "fact", "instead"),
    [
        (STATUS, "/state: urn:kquota:schema:decision:1#/$defs/state, required", None),
        (STATUS, "/notes: array, required", "/notes: string, required"),
        (STATUS, "/next_step: null|string, optional", "/next_step: null|string, required"),
        (STATUS, '#volume/status = "offline"', None),
        (METRICS, "kquota_applied_mode", None),
        ("docs/command-line.md", "kquota status: --json", None),
        ("docs/command-line.md", "Command line: 78", None),
        ("docs/configuration.md", "broker.node_id", "broker.id"),
    ],
)
def test_a_change_is_a_break_until_the_next_major_version(file: str, fact: str, instead: str | None) -> None:
    present = copy.deepcopy(dict(present_contracts()))
    before = {"version": "1.0.0", "contracts": copy.deepcopy(present)}
    (known,) = [one for one in present[file] if one == fact or one.startswith(f"{fact}, ")]
    present[file].remove(known)
    present[file] += [] if instead is None else [instead]
    assert broken(before, present, "1.3.0") == [f"{file}: {known} is gone, or changed"]
    assert broken(before, present, "2.0.0") == []


def test_what_is_new_is_no_break_unless_it_is_required() -> None:
    present = copy.deepcopy(dict(present_contracts()))
    before = {"version": "1.0.0", "contracts": copy.deepcopy(present)}
    present[STATUS] += ["/more: string, optional", '#volume/status = "slow"']
    present[METRICS] += ["kquota_more, gauge, "]
    present["schemas/more.schema.json"] = ["/anything: string, required"]
    assert broken(before, present, "1.0.1") == []
    present[STATUS] += ["#volume/must: string, required"]
    assert broken(before, present, "1.0.1") == [
        f"{STATUS}: #volume/must: string, required: a new key has to be optional"
    ]
