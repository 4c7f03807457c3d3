"""The page of messages and files: every field of every published schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.reference.markdown import code, head, sentence, table

_ORDER = (
    "usage",
    "operator",
    "decision",
    "applied",
    "leaders",
    "topics",
    "limits",
    "history",
    "segments",
    "status",
    "relief",
)
_KINDS = {"string": "text", "object": "object", "array": "list", "null": "null"}


def messages_page(repository: Path) -> str:
    """Return docs/messages.md.

    Raises:
        LookupError: there is a schema that this page has no place for.
    """
    schemas = repository / "schemas"
    found = {path.name.removesuffix(".schema.json") for path in schemas.glob("*.schema.json")}
    if found != set(_ORDER):
        raise LookupError(f"schemas that have no place in the page: {', '.join(sorted(found ^ set(_ORDER)))}")
    lines = head(
        "Messages and files",
        "The messages and files that the parts of kquota exchange, and that other programs may build on. The"
        " schemas define them, with samples; [schemas](../schemas/README.md) lists writers, readers and the"
        " promises about versions.",
        origin="the JSON Schemas",
    )
    for name in _ORDER:
        schema = json.loads((schemas / f"{name}.schema.json").read_text("utf-8"))
        file = f"{name}.schema.json"
        lines += [f"## {schema['title']}", "", f"[{file}](../schemas/{file})", ""]
        lines += _object(schema)
        for definition, part in schema.get("$defs", {}).items():
            if "properties" in part:
                lines += [f"### {schema['title']}: {part.get('title', definition.replace('_', ' '))}", ""]
                lines += _object(part)
    return "\n".join(lines)


def _object(schema: Mapping[str, Any]) -> list[str]:
    lines = [sentence(schema["description"]), ""] if "description" in schema else []
    if "properties" in schema:
        lines += table(["field", "kind", "meaning"], _fields(schema, ""))
    return lines


def _fields(schema: Mapping[str, Any], prefix: str) -> Iterator[list[str]]:
    required = set(schema.get("required", ()))
    for name, field in schema["properties"].items():
        if not isinstance(field, Mapping):
            continue
        kind = _kind(field) + ("" if name in required else ", optional")
        yield [code(f"{prefix}{name}"), kind, sentence(field.get("description", ""))]
        inner = field.get("items", field)
        if isinstance(inner, Mapping) and "properties" in inner:
            yield from _fields(inner, f"{prefix}{name}{'[]' if inner is not field else ''}.")


def _kind(field: Mapping[str, Any]) -> str:
    """Return what a field holds, in a few words."""
    if "const" in field:
        return code(field["const"])
    if "enum" in field:
        return " or ".join(code(value) for value in field["enum"])
    if "$ref" in field:
        return str(field["$ref"]).rpartition("/")[2].rpartition(":schema:")[2].replace("_", " ")
    for choice in ("anyOf", "oneOf"):
        if choice in field:
            return " or ".join(dict.fromkeys(_kind(option) for option in field[choice]))
    kinds = field.get("type", "any")
    if kinds == "array" and isinstance(field.get("items"), Mapping):
        return f"list of {_kind(field['items'])}"
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds)
