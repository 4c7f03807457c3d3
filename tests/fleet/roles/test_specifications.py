"""The example inventories with the roles' defaults pass the roles' argument specifications."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

INVENTORIES = sorted((REPOSITORY / "inventories").iterdir())
# Each with an entry point that loads its defaults.
ROLES = {
    "kquota_agent": "service",
    "kquota_callback": "facts_properties",
    "kquota_package": "contexts",
    "kquota_release": "main",
    "kquota_tls": "remove",
    "kquota_topic": "remove",
}


def checks(role: str, part: str) -> list[dict[str, Any]]:
    """Tasks that validate the role's variables without running the role."""
    text = (REPOSITORY / f"roles/{role}/meta/argument_specs.yml").read_text("utf-8")
    options = yaml.safe_load(text)["argument_specs"]["main"]["options"]
    return [
        {"ansible.builtin.import_role": {"name": role, "tasks_from": part}, "when": False},
        {"ansible.builtin.validate_argument_spec": {"argument_spec": options}},
    ]


@pytest.mark.parametrize("inventory", INVENTORIES, ids=lambda path: path.name)
def test_every_role_accepts_the_inventory(inventory: Path, tmp_path: Path) -> None:
    tasks = [task for role, part in ROLES.items() for task in checks(role, part)]
    variables = {"vault_kquota_agent_password": "secret", "vault_kquota_ca_passphrase": "secret"}
    run_play(tmp_path, tasks, variables, inventory=str(inventory))


def test_a_wrong_value_is_refused(tmp_path: Path) -> None:
    tasks, variables = checks("kquota_callback", "facts_properties"), {"kquota_fallback_action": "close"}
    with pytest.raises(PlayFailed, match="value of kquota_callback_fallback_action must be one of"):
        run_play(tmp_path, tasks, variables, inventory=str(REPOSITORY / "inventories/tls"))
