"""Load the configuration from its layers; report all its problems at once."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from kquota.settings.kafka_options import SECRET_REFERENCE, is_secret
from kquota.settings.layers import EnvironmentLayer, FileLayer, merged, read_text
from kquota.settings.model import Settings, SourceOf, Sources, VolumeLimitsSection
from kquota.settings.problems import REDACTED, Allowed, Problem, SettingsError, findings_of, show
from kquota.settings.values import VOLUME_PATH

_MAX_SECRET_BYTES = 64 * 1024
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
    # pydantic-settings takes names with an underscore in front for options of its own
    hidden = [name for name in document if name.startswith("_")]
    credentials = _credentials_directory(path, environ)
    secrets, problems = _read_secrets(document.get("kafka_secrets"), credentials, source_of)
    problems = [
        *environment.problems,
        *(_unknown((name,), source_of((name,))) for name in hidden),
        *problems,
    ]
    try:
        settings = Settings(**{name: value for name, value in document.items() if name not in hidden})
    except ValidationError as error:
        found = _problems(error, document, source_of)
        keys = {problem.key for problem in found}
        raise SettingsError([*found, *(problem for problem in problems if problem.key not in keys)]) from None
    if problems:
        raise SettingsError(problems)
    settings._secrets.update(secrets)
    settings._sources = Sources(source_of)
    return settings


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


def _read_secrets(
    references: object, credentials: Path, source_of: SourceOf
) -> tuple[dict[str, str], list[Problem]]:
    secrets: dict[str, str] = {}
    problems = []
    for name, reference in references.items() if isinstance(references, Mapping) else ():
        if not isinstance(reference, str):
            continue  # the model reports it
        secret = _read_secret(reference, credentials)
        if isinstance(secret, str):
            secrets[str(name)] = secret
        else:
            key = ("kafka_secrets", str(name))
            problems.append(Problem(source_of(key), ".".join(key), None, secret.why, SECRET_REFERENCE))
    return secrets, problems


@dataclass(frozen=True, slots=True)
class _Unread:
    """Why there is no secret."""

    why: str


def _read_secret(reference: str, credentials: Path) -> str | _Unread:
    path = credentials / reference  # an absolute path stays as it is
    # A name is not quoted: it may be the secret itself, put in the wrong place.
    what = reference if reference.startswith("/") else f"a credential in {credentials}"
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if mode & stat.S_IROTH:
                return _Unread(f"names {what}, which every user may read (mode {stat.S_IMODE(mode):04o})")
            raw = stream.read(_MAX_SECRET_BYTES + 1)
        secret = raw.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        return _Unread(f"names {what}, which can't be read: {error.strerror}")
    except UnicodeDecodeError:
        return _Unread(f"names {what}, which is not UTF-8 text")
    except ValueError:  # a null byte in the name
        return _Unread("names no file")
    if not secret or len(raw) > _MAX_SECRET_BYTES:
        return _Unread(f"names {what}, which is {'empty' if not secret else 'too large for a secret'}")
    return secret


def _problems(error: ValidationError, document: Mapping[str, Any], source_of: SourceOf) -> list[Problem]:
    problems: dict[str, Problem] = {}
    for entry in error.errors(include_url=False):
        place = _place(entry["loc"])
        findings = findings_of(entry)
        for finding in findings:
            location = (*place, *finding.key)
            wrong, value = finding.wrong, finding.value
            key = ".".join(location)
            problems.setdefault(key, Problem(source_of(location), key, value, wrong, finding.allowed))
        if not findings:
            key = ".".join(place)
            problems.setdefault(key, _problem(entry, place, source_of(place), document))
    return list(problems.values())


def _problem(
    entry: Mapping[str, Any], place: tuple[str, ...], source: str, document: Mapping[str, Any]
) -> Problem:
    key = ".".join(place)
    if entry["type"] == "extra_forbidden":
        return _unknown(place, source)
    if entry["loc"][-1] == "[key]":
        return Problem(source, key, place[-1], "is no path of a volume", VOLUME_PATH)
    allowed = _allowed_at(place)
    if entry["type"] == "missing":
        return Problem(source, key, None, "is missing", allowed)
    hidden = place[0] in ("kafka", "kafka_secrets") or is_secret(place[-1])
    value = REDACTED if hidden else show(_value_at(document, place))
    return Problem(source, key, value, f"is {value}", allowed)


def _unknown(place: tuple[str, ...], source: str) -> Problem:
    known = _keys_of(place[:-1])
    close = difflib.get_close_matches(place[-1], known, n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return Problem(source, ".".join(place), None, f"is no known key{hint}", ", ".join(known))


def _place(location: Sequence[int | str]) -> tuple[str, ...]:
    """Return the keys of a pydantic location without what pydantic adds for unions and dict keys."""
    names: list[str] = []
    for part in location:
        if part == "[key]" or str(part).startswith(("function-plain[", "nullable[")):
            continue
        names.append(str(part))
    return tuple(names)


def _value_at(document: Mapping[str, Any], place: Sequence[str]) -> object:
    node: object = document
    for name in place:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _field_at(place: Sequence[str]) -> FieldInfo | type[BaseModel]:
    """Return the model's field at a place, or the section of one entry where operators name the keys."""
    section: type[BaseModel] = Settings
    field: FieldInfo | type[BaseModel] = Settings
    names = list(place)
    while names:
        name = names.pop(0)
        field = section.model_fields[name]
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            section = field.annotation
        elif name == "volumes" and names:
            names.pop(0)
            section = field = VolumeLimitsSection
    return field


def _keys_of(place: Sequence[str]) -> list[str]:
    field = _field_at(place)
    section = field.annotation if isinstance(field, FieldInfo) else field
    assert isinstance(section, type)
    assert issubclass(section, BaseModel)
    return list(section.model_fields)


def _allowed_at(place: Sequence[str]) -> str:
    field = _field_at(place)
    if isinstance(field, FieldInfo):
        words = [mark.text for mark in field.metadata if isinstance(mark, Allowed)]
        if words:
            return words[0]
    return f"a mapping with {', '.join(_keys_of(place))}"
