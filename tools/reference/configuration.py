"""The page of configuration keys: the example file, section by section, with what is allowed for each key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kquota.settings.kafka_options import OWNED_NAMES
from kquota.settings.model import Settings
from kquota.settings.problems import Allowed
from tools.reference.markdown import code, head, table

_HEADING = re.compile(r"^# --- (.+?) -+\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration; ``default`` is JSON text, None where the key is required."""

    path: tuple[str, ...]
    allowed: str
    default: str | None

    @property
    def name(self) -> str:
        """Its dotted name."""
        return ".".join(self.path)


class UnexplainedKey(LookupError):
    """A key that the example file does not explain; the text names it."""


def all_keys() -> list[Key]:
    """Return every key of the settings model, in its order."""
    minimal = Settings.model_validate(
        {"broker": {"server_properties": "/"}, "kafka": {"bootstrap.servers": "localhost:9093"}}
    )
    document = minimal.redacted()
    keys = []
    for path, field in _leaves(Settings, ()):
        default = None if field.is_required() else _json(_value(document, path))
        allowed = next(mark for mark in field.metadata if isinstance(mark, Allowed))
        keys.append(Key(path, allowed.text, default))
    return keys


def configuration_page(repository: Path) -> str:
    """Return docs/configuration.md.

    Raises:
        UnexplainedKey: the example file says nothing about a key.
    """
    return render_page((repository / "packaging/agent.yml.example").read_text("utf-8"))


def render_page(example_text: str) -> str:
    """Return the page for the text of an example file.

    Raises:
        UnexplainedKey: the example file says nothing about a key.
    """
    introduction, *sections = _HEADING.split(example_text)
    lines = head(
        "Configuration",
        "The agent reads `/etc/kquota/agent.yml`. This page shows the file to start from,"
        " [agent.yml.example](../packaging/agent.yml.example). `kquota config show` prints the settings in"
        " force.",
        *re.sub("(?m)^# ?", "", introduction).strip().split("\n\n")[1:],
        origin="the settings and their example file",
    )
    left = all_keys()
    for heading, text in zip(sections[::2], sections[1::2], strict=True):
        document = yaml.safe_load(text)
        for name in document:
            if not re.search(rf"^#.*\n{name}:|^{name}:\n +#", text, re.MULTILINE):
                raise UnexplainedKey(f"{name} has no comment in the example file")
        here = [key for key in left if _value(document, key.path) is not _ABSENT]
        left = [key for key in left if key not in here]
        lines += [f"## {heading}", "", "```yaml", text.strip(), "```", ""]
        lines += table(["key", "default", "allowed", "environment"], map(_row, here))
    if left:
        raise UnexplainedKey(f"{left[0].name} is not in the example file")
    return "\n".join([*lines, *_refused()])


_ABSENT = object()


def _value(document: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        document = document.get(part, _ABSENT) if isinstance(document, dict) else _ABSENT
    return document


def _leaves(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _leaves(annotation, (*path, name))
        else:
            yield (*path, name), field


def _json(value: Any) -> str:
    return json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def _row(key: Key) -> list[str]:
    default = "none, the key is required" if key.default is None else code(key.default)
    return [code(key.name), default, key.allowed, code("KQUOTA_" + "__".join(key.path).upper())]


def _refused() -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, why in OWNED_NAMES.items():
        reasons.setdefault(why, []).append(code(name))
    rows = [[", ".join(names), why.replace("<", "&lt;")] for why, names in reasons.items()]
    title = "## Names of librdkafka that are refused"
    return [title, "", "kquota sets them itself.", "", *table(["names", "because"], rows)]
