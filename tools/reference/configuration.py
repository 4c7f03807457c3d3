"""The page of configuration keys: each with its meaning, default and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kquota.settings.kafka_options import OWNED_NAMES
from kquota.settings.model import Settings
from kquota.settings.problems import Allowed
from tools.reference.example import Explanation, read_example
from tools.reference.markdown import code, head, table


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration.

    ``default`` is JSON text, None where the key is required; ``section`` is the model's description of the
    section that the key is in, None for a key in none.
    """

    name: str
    allowed: str
    default: str | None
    section: str | None


class UnexplainedKey(LookupError):
    """A key that the example file does not explain; the text names it."""


def all_keys() -> list[Key]:
    """Return every key of the settings model, in its order."""
    minimal = Settings.model_validate(
        {"broker": {"server_properties": "/"}, "kafka": {"bootstrap.servers": "localhost:9093"}}
    )
    document = minimal.redacted()
    keys = []
    for model, path, field in _leaves(Settings, ()):
        value: object = document
        for part in path:
            value = cast("dict[str, object]", value)[part]
        default = None if field.is_required() else _json(value)
        allowed = next(mark for mark in field.metadata if isinstance(mark, Allowed))
        section = model.__doc__ if len(path) > 1 else None
        keys.append(Key(".".join(path), allowed.text, default, section))
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
    introduction, explanations = read_example(example_text)
    lines = head(
        "Configuration",
        "The agent reads `/etc/kquota/agent.yml`; a file to start from is"
        " [agent.yml.example](../packaging/agent.yml.example). `kquota config show` prints the settings in"
        " force.",
        *introduction,
        origin="the settings and their example file",
    )
    section = ""
    for key in sorted(all_keys(), key=lambda key: _position(explanations, key.name)):
        explanation = explanations[key.name]
        if explanation.section != section:
            section = explanation.section
            lines += [f"## {section}", ""]
        lines += _key(key, _prose(explanations, key), explanation.sample)
    return "\n".join([*lines, *_refused()])


def _leaves(
    model: type[BaseModel], path: tuple[str, ...]
) -> Iterator[tuple[type[BaseModel], tuple[str, ...], FieldInfo]]:
    for name, field in model.model_fields.items():
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _leaves(annotation, (*path, name))
        else:
            yield model, (*path, name), field


def _json(value: object) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(cast("float", value)) if whole else value)


def _position(explanations: dict[str, Explanation], name: str) -> int:
    try:
        return list(explanations).index(name)
    except ValueError:
        raise UnexplainedKey(f"{name} is not in the example file") from None


def _prose(explanations: dict[str, Explanation], key: Key) -> list[str]:
    """Return the explanation of a key; without one, that of its section."""
    name = key.name
    while name:
        if explanations[name].prose:
            return explanations[name].prose
        name = name.rpartition(".")[0]
    if key.section is None:
        raise UnexplainedKey(f"{key.name} has no comment in the example file")
    return [key.section]


def _key(key: Key, prose: list[str], sample: list[str]) -> list[str]:
    lines = [f"### `{key.name}`", ""]
    for paragraph in prose:
        lines += [paragraph, ""]
    if sample:
        lines += ["```yaml", *sample, "```", ""]
    default = "none, the key is required" if key.default is None else code(key.default)
    return [
        *lines,
        f"- default: {default}",
        f"- allowed: {key.allowed}",
        f"- environment: `KQUOTA_{key.name.replace('.', '__').upper()}`",
        "",
    ]


def _refused() -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, why in OWNED_NAMES.items():
        reasons.setdefault(why, []).append(code(name))
    rows = [[", ".join(names), why.replace("<", "&lt;")] for why, names in reasons.items()]
    title = "## Names of librdkafka that are refused"
    return [title, "", "kquota sets them itself.", "", *table(["names", "because"], rows)]
