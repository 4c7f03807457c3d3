"""``python -m tools.contracts``: record what a release promises, for the tests of the releases after it.

A fact is one line: a key of a message with its type, a metric with its labels, an option of a command. Those
of messages and files come from their schemas, all others from the pages of reference, made from the code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kquota

REPOSITORY = Path(__file__).resolve().parents[1]
RECORD = Path("schemas") / "contracts.json"
FIRST_RELEASE = "1.0.0"
"""From this version on, contracts are kept."""

Contracts = Mapping[str, list[str]]
_ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$")
_HEADING = re.compile(r"^#+ `?([^`]+)`?$")
_OPTION = re.compile(r"^\* `(?:-\w, )?(--[a-z-]+)")
# Which cells of a row belong to the fact, besides the name in the first.
_CELLS = {
    "docs/broker-properties.md": 0,
    "docs/command-line.md": 0,
    "docs/configuration.md": 0,
    "docs/metrics.md": 2,
    "docs/role-variables.md": 0,
    "docs/tables.md": 1,
}
_BELOW_HEADINGS = ("docs/command-line.md", "docs/tables.md")


def present_contracts(root: Path = REPOSITORY) -> Contracts:
    """Return the facts as they are now, by the file that has them."""
    schemas = {
        f"schemas/{path.name}": sorted(set(schema_facts(json.loads(path.read_text("utf-8")))))
        for path in sorted((root / "schemas").glob("*.schema.json"))
    }
    pages = {name: sorted(set(_page_facts(name, (root / name).read_text("utf-8")))) for name in _CELLS}
    return {**schemas, **pages}


def schema_facts(schema: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """Yield each key with its type and whether it is required, and each value that a text may have."""
    for value in schema.get("enum", [schema["const"]] if "const" in schema else []):
        yield f"{at} = {json.dumps(value)}"
    for word in ("anyOf", "oneOf", "allOf"):
        for alternative in schema.get(word, ()):
            yield from schema_facts(alternative, at)
    for word in {"then", "else"} & schema.keys():
        yield from schema_facts(schema[word], at)
    for name, inner in schema.get("$defs", {}).items():
        yield from schema_facts(inner, f"#{name}")
    for name, inner in schema.get("properties", {}).items():
        if isinstance(inner, Mapping):
            need = "required" if name in schema.get("required", ()) else "optional"
            yield f"{at}/{name}: {_type_of(inner)}, {need}"
            yield from schema_facts(inner, f"{at}/{name}")
    for word, name in (("items", "[]"), ("additionalProperties", "*")):
        if isinstance(schema.get(word), Mapping):
            yield f"{at}/{name}: {_type_of(schema[word])}"
            yield from schema_facts(schema[word], f"{at}/{name}")


def broken(record: Mapping[str, Any], present: Contracts, version: str) -> list[str]:
    """Return how ``present`` breaks what the recorded release promises to a later one.

    Nothing is promised before the first release, and to a later major version. A new key has to be optional:
    the programs of the release before do not write it.
    """
    recorded, own = _numbers(record["version"]), _numbers(version)
    if own < recorded or own[0] > recorded[0]:
        return []
    found = []
    for file, before in record["contracts"].items():
        now = present.get(file, [])
        found += [f"{file}: {fact} is gone, or changed" for fact in before if fact not in now]
        keys = {fact.partition(": ")[0] for fact in before}
        parents = {key.rpartition("/")[0] for key in keys}
        for fact in now:
            key = fact.partition(": ")[0]
            if fact.endswith(", required") and key not in keys and key.rpartition("/")[0] in parents:
                found.append(f"{file}: {fact}: a new key has to be optional")
    return found


def main(root: Path = REPOSITORY) -> None:
    """Record the present contracts, as those of this version or of the first release."""
    version = max(kquota.__version__, FIRST_RELEASE, key=_numbers)
    document = {"version": version, "contracts": present_contracts(root)}
    (root / RECORD).write_text(json.dumps(document, indent=1) + "\n", "utf-8")


def _page_facts(name: str, text: str) -> Iterator[str]:
    heading = ""
    for line in text.splitlines():
        prefix = f"{heading}: " if name in _BELOW_HEADINGS else ""
        if (match := _HEADING.match(line)) is not None:
            heading = match[1]
        elif (match := _ROW.match(line)) is not None:
            cells = [cell.strip().replace("`", "") for cell in match[2].split(" | ")]
            with_name = cells[: _CELLS[name]] if len(cells) > _CELLS[name] else []  # never the meaning
            yield prefix + ", ".join([match[1], *with_name])
        elif (match := _OPTION.match(line)) is not None and name == "docs/command-line.md":
            yield prefix + match[1]


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("$ref") or schema.get("type", "any")
    return kind if isinstance(kind, str) else "|".join(sorted(kind))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    main()
