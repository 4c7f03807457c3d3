"""Load the configuration from its layers; report all its problems at once."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from kquota.settings.kafka_options import is_secret
from kquota.settings.layers import ENV_PREFIX, EnvironmentLayer, FileLayer, jsonable, merged, read_text
from kquota.settings.model import Settings, SourceOf, Sources
from kquota.settings.problems import REDACTED, Allowed, Problem, SettingsError, findings_of, show
from kquota.settings.values import VOLUME_PATH

# Sections whose values may be secret, whatever their names.
_HIDDEN = ("kafka", "kafka_secrets")
_CREDENTIALS = Path("/run/credentials")
"""Where systemd keeps the credentials of each unit that runs; only root gets at others' than its own."""


def load(path: Path, environ: Mapping[str, str]) -> Settings:
    """Read the configuration from ``path``, the variables ``KQUOTA_…`` and the files of secrets.

    ``environ`` is the process's environment; ``CREDENTIALS_DIRECTORY`` in it is where systemd puts
    credentials. Without it, those of the running agent with this configuration are looked for.

    Raises:
        SettingsError: with every problem found.
    """
    return load_text(read_text(path), path, environ)


def load_text(text: str, path: Path, environ: Mapping[str, str]) -> Settings:
    """Do what :func:`load` does with the content of ``path`` already read."""
    file, environment = _layers(text, path, environ)

    def source_of(location: Sequence[str]) -> str:
        return environment.source_of(location) or file.source_of(location)

    document = merged(file.document, environment.document)
    settings = _validated(document, path, environ, source_of, environment.problems)

    def without_secrets() -> Mapping[str, Any]:  # the agent alone asks for it, no command
        open_variables = {name: text for name, text in environ.items() if not _holds_secret(name, text)}
        kept: Mapping[str, Any] = jsonable(merged(file.document, EnvironmentLayer(open_variables).document))
        return kept

    settings._sources = Sources(source_of, without_secrets)
    return settings


def load_document(document: Mapping[str, Any], path: Path, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a :attr:`Settings.document` of before, with today's secrets of ``environ``.

    Raises:
        SettingsError: with every problem found.
    """
    secret = EnvironmentLayer({name: text for name, text in environ.items() if _holds_secret(name, text)})

    def source_of(_location: Sequence[str]) -> str:
        return "the last good configuration"

    settings = _validated(merged(document, secret.document), path, environ, source_of, [])
    settings._sources = Sources(source_of, lambda: document)
    return settings


def _validated(
    document: Mapping[str, Any],
    path: Path,
    environ: Mapping[str, str],
    source_of: SourceOf,
    more_problems: Sequence[Problem],
) -> Settings:
    secrets: dict[str, str] = {}
    context = {"credentials": _credentials_directory(path, environ), "secrets": secrets}
    try:
        settings = Settings.model_validate(document, context=context)
    except ValidationError as error:
        raise SettingsError([*problems_of(error, Settings, source_of), *more_problems]) from None
    if more_problems:
        raise SettingsError(more_problems)
    settings._secrets.update(secrets)
    return settings


def _holds_secret(name: str, value: str) -> bool:
    if name.removeprefix(ENV_PREFIX) == "KAFKA":  # the whole section as JSON
        return is_secret(value.replace('"', " "))
    return name.startswith(f"{ENV_PREFIX}KAFKA__") and is_secret(name.replace("_", "."))


def _layers(text: str, path: Path, environ: Mapping[str, str]) -> tuple[FileLayer, EnvironmentLayer]:
    problems: list[Problem] = []
    file = environment = None
    try:
        file = FileLayer(path, text)
    except SettingsError as error:
        problems += error.problems
    try:
        environment = EnvironmentLayer(environ)
    except SettingsError as error:
        problems += error.problems
    if file is None or environment is None:
        raise SettingsError(problems)
    return file, environment


def _credentials_directory(path: Path, environ: Mapping[str, str]) -> Path:
    """Return where systemd has put this process's credentials, or those of the agent with the configuration.

    The latter is for commands that root runs next to the agent; it exists as long as the agent runs.
    """
    if given := environ.get("CREDENTIALS_DIRECTORY"):
        return Path(given)
    unit = "kquota-agent" if path.stem == "agent" else f"kquota-agent@{path.stem}"
    return _CREDENTIALS / f"{unit}.service"


def problems_of(error: ValidationError, model: type[BaseModel], source_of: SourceOf) -> list[Problem]:
    """Return every problem that pydantic has with a document for ``model``, one for each key."""
    problems: dict[str, Problem] = {}
    for entry in error.errors(include_url=False):
        place = _place(entry["loc"])
        findings = findings_of(entry)
        for finding in findings:
            location = (*place, *finding.key)
            key = ".".join(location)
            problem = Problem(source_of(location), key, finding.value, finding.wrong, finding.allowed)
            problems.setdefault(key, problem)
        if not findings:
            problem = _problem(entry, model, place, source_of(place))
            problems.setdefault(problem.key, problem)
    return list(problems.values())


def _problem(
    entry: Mapping[str, Any], model: type[BaseModel], place: tuple[str, ...], source: str
) -> Problem:
    key = ".".join(place)
    if entry["type"] == "extra_forbidden":
        known = _keys_of(model, place[:-1])
        close = difflib.get_close_matches(place[-1], known, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        return Problem(source, key, None, f"is no known key{hint}", ", ".join(known))
    if entry["loc"][-1] == "[key]":
        return Problem(source, key, place[-1], "is no path of a volume", VOLUME_PATH)
    allowed = _allowed_at(model, place)
    if entry["type"] == "missing":
        return Problem(source, key, None, "is missing", allowed)
    hidden = place[0] in _HIDDEN or is_secret(place[-1])
    value = REDACTED if hidden else show(entry["input"])
    return Problem(source, key, value, f"is {value}", allowed)


def _place(location: Sequence[int | str]) -> tuple[str, ...]:
    """Return the keys of a pydantic location without what pydantic adds for unions and dict keys."""
    return tuple(
        str(part)
        for part in location
        if part != "[key]" and not str(part).startswith(("function-plain[", "nullable["))
    )


def _field_at(model: type[BaseModel], place: Sequence[str]) -> FieldInfo | type[BaseModel]:
    """Return the model's field at a place, or the section that is there."""
    found: FieldInfo | type[BaseModel] = model
    names = iter(place)
    for name in names:
        if isinstance(found, FieldInfo):
            break
        found = found.model_fields[name]
        types = (found.annotation, *get_args(found.annotation))
        section = next((one for one in types if isinstance(one, type) and issubclass(one, BaseModel)), None)
        of_entry = get_origin(found.annotation) is dict and next(names, None) is None
        if section is not None and not of_entry:
            found = section
    return found


def _keys_of(model: type[BaseModel], place: Sequence[str]) -> list[str]:
    section = _field_at(model, place)
    assert not isinstance(section, FieldInfo)
    return list(section.model_fields)


def _allowed_at(model: type[BaseModel], place: Sequence[str]) -> str:
    field = _field_at(model, place)
    marks = field.metadata if isinstance(field, FieldInfo) else ()
    words = [mark.text for mark in marks if isinstance(mark, Allowed)]
    return words[0] if words else f"a mapping with {', '.join(_keys_of(model, place))}"
