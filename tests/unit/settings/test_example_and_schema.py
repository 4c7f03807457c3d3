"""The example file holds every key with its default; limits follow the published schema."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from kquota.settings import Settings, SettingsError, load
from kquota.settings.problems import Allowed
from tests.unit.settings.configuration import loaded

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "packaging" / "agent.yml.example"
SCHEMA = json.loads((ROOT / "schemas" / "limits.schema.json").read_text())
OPEN_SECTIONS = {"kafka", "kafka_secrets", "limits.volumes", "limits.hard", "limits.soft"}
REQUIRED = {"broker.server_properties", "kafka"}


def keys_of(section: type[BaseModel], prefix: str = "") -> dict[str, Any]:
    """Return every leaf key of the model with its field."""
    keys: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys |= keys_of(field.annotation, f"{prefix}{name}.")
        else:
            keys[prefix + name] = field
    return keys


def leaves(document: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in document.items():
        key = prefix + name
        if isinstance(value, dict) and key not in OPEN_SECTIONS:
            found |= leaves(value, key + ".")
        else:
            found[key] = value
    return found


def test_the_example_holds_every_key_and_no_other() -> None:
    document = yaml.safe_load(EXAMPLE.read_text())
    assert set(leaves(document)) == set(keys_of(Settings))


def test_the_example_shows_the_defaults() -> None:
    example, default = leaves(load(EXAMPLE, {}).redacted()), leaves(loaded().redacted())
    for key in keys_of(Settings):
        if key not in REQUIRED:
            assert example[key] == default[key], key


def test_every_key_is_explained_in_the_example() -> None:
    lines = EXAMPLE.read_text().splitlines()
    for number, line in enumerate(lines):
        if line and not line.lstrip().startswith("#") and not line.endswith(":"):
            block = []
            for above in reversed(lines[:number]):
                if not above.strip():
                    break
                block.append(above.lstrip())
            assert any(text.startswith("#") for text in block), f"nothing explains {line!r}"


def test_every_leaf_says_what_is_allowed() -> None:
    for key, field in keys_of(Settings).items():
        assert any(isinstance(mark, Allowed) for mark in field.metadata), key


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {
            "hard": {"type": "MinFreePercentage", "level": 0},
            "soft": {"type": "MinFreePercentage", "level": 100},
        },
        {"hard": {"type": "MinFreePercentage", "level": 100.5}},
        {"hard": {"type": "MinFreePercentage", "level": "100.5"}},
        {"hard": {"type": "MinFreePercentage", "level": "12.5"}},
        {"hard": {"type": "MinFreePercentage", "level": -1}},
        {"hard": {"type": "MinFreeBytes", "level": 2**53}},
        {"hard": {"type": "MinFreeBytes", "level": 2**53 + 1}},
        {"hard": {"type": "MinFreePercentage", "level": "12.3456789012345"}},
        {"hard": {"type": "MinFreePercentage", "level": "12.34567890123456789"}},
        {"hard": {"type": "MinFreeBytes", "level": "10G"}},
        {"hard": {"type": "MinFreeBytes", "level": None}},
        {"hard": {"type": "MinFreeBytes", "level": True}},
        {"hard": {"type": "MinFreeBytes"}},
        {"hard": {"level": 5}},
        {"hard": {"type": "minfreebytes", "level": 5}},
        {"hard": {"type": "MinFreeBytes", "level": 5, "unit": "GB"}},
        {"hard": None},
        {"firm": {}},
        {"volumes": {"/data/1": {"hard": {"type": "MinFreeBytes", "level": 5}}}},
        {"volumes": {"/data/1": {"hard": None, "soft": {"type": "ConsumedSpace", "level": "0.5"}}}},
        {"volumes": {"/": {}}},
        {"volumes": {"/data/1": {"hard": {"type": "MinFreeBytes", "level": -5}}}},
        {"volumes": {"/data/1": {"firm": {}}}},
        {"volumes": {"data": {}}},
        {"volumes": {"/data/": {}}},
        {"volumes": {"/data/../1": {}}},
        {"volumes": {"/data/..1": {}}},
        {"volumes": {"//data": {}}},
        {"volumes": []},
        {"inodes": None},
        {"inodes": {}},
        {"inodes": {"soft_free_percent": 10, "hard_free_percent": 2.5}},
        {"inodes": {"soft_free_percent": "10.5"}},
        {"inodes": {"soft_free_percent": 0}},
        {"inodes": {"soft_free_percent": 101}},
        {"inodes": {"hard_free_percent": -1}},
        {"inodes": {"hard_free_percent": None}},
        {"inodes": {"hard_free_percent": True}},
        {"inodes": {"hard_percent": 1}},
        {"inodes": []},
    ],
    ids=json.dumps,
)
def test_settings_and_schema_agree(limits: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    by_schema = Draft202012Validator(SCHEMA).is_valid(limits)
    try:
        loaded(f"limits: {json.dumps(limits)}\n")
        by_settings = True
    except SettingsError:
        by_settings = False
    assert by_settings is by_schema


def test_the_schema_s_defaults_are_ours() -> None:
    shown = loaded().redacted()["limits"]
    assert {name: SCHEMA["properties"][name]["default"] for name in SCHEMA["properties"]} == shown
    assert Draft202012Validator(SCHEMA).is_valid(shown)
