"""The page of role variables: the inputs of each role, with their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.reference.markdown import code, head, sentence, table

_OR_LITERAL = re.compile(r"\{\{ (?P<variable>\w+) \| default\((?P<literal>'[^']*'|\w+|\[\]|\{\})\) \}\}")
_VARIABLE = re.compile(r"\b(?:kquota_\w+|inventory_dir|playbook_dir)\b")


def roles_page(repository: Path) -> str:
    """Return docs/role-variables.md."""
    lines = head(
        "Role variables",
        "Each role checks its variables before it does anything, and its README explains its purpose and how"
        " it is used; [on a fleet of brokers](fleet.md) has the plays that put them together, and the few"
        " variables that several share.",
        origin="the roles' argument specifications and defaults",
    )
    for role in sorted((repository / "roles").iterdir()):
        specification = _yaml(role / "meta/argument_specs.yml")["argument_specs"]["main"]
        defaults = _yaml(role / "defaults/main.yml")
        lines += [f"## {role.name}", "", *_prose(specification["description"])]
        lines += [f"See [its README](../roles/{role.name}/README.md).", ""]
        rows = _rows(specification["options"], defaults, "")
        lines += table(["variable", "type", "default", "meaning"], rows)
    return "\n".join(lines)


def _rows(options: Mapping[str, Any], defaults: Mapping[str, Any], prefix: str) -> Iterator[list[str]]:
    for name, option in options.items():
        default = defaults.get(name, option.get("default"))
        if option.get("required"):
            shown = "required"
        elif default is None:
            shown = "none"
        else:
            shown = _default(default)
        meaning = " ".join(_prose(option["description"]))
        if "choices" in option:
            meaning += f" One of {', '.join(map(code, option['choices']))}."
        kind = option["type"] + (f" of {option['elements']}" if "elements" in option else "")
        yield [code(f"{prefix}{name}"), kind, shown, meaning]
        yield from _rows(option.get("options", {}), {}, f"{prefix}{name}.")


def _default(value: object) -> str:
    """A literal as it is written; of a template, the variables that it is worked out from."""
    text = str(value)
    if "{{" not in text:
        return code(value)
    if plain := _OR_LITERAL.fullmatch(text):
        variable, literal = plain["variable"], plain["literal"].strip("'")
        return f"{code(variable)}, or {code(literal) if literal not in ('', '[]', '{}') else 'empty'}"
    variables = map(code, dict.fromkeys(_VARIABLE.findall(text)))
    return f"worked out from {', '.join(variables) or 'the inventory'}"


def _prose(description: str | list[str]) -> list[str]:
    texts = [description] if isinstance(description, str) else description
    return [sentence(text) for text in texts]


def _yaml(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8")) or {}
