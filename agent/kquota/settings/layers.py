"""The layers of the configuration: the YAML file below, the environment above it."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import yaml

from kquota.settings.model import Settings
from kquota.settings.problems import Problem, SettingsError

ENV_PREFIX = "KQUOTA_"
_DELIMITER = "__"
# Variables of the command line that share the prefix.
RESERVED_VARIABLES = frozenset({"KQUOTA_CONFIG"})
_MAX_FILE_BYTES = 1024 * 1024
_REMEDIES = {
    errno.ENOENT: "; run kquota config init, or name another file with --config",
    errno.EACCES: "; run this as root or as the agent's user",
}


class _ExactLoader(yaml.SafeLoader):
    """YAML with decimal numbers kept exact and double keys refused."""


def _construct_decimal(loader: _ExactLoader, node: yaml.ScalarNode) -> object:
    try:
        return Decimal(str(node.value).replace("_", ""))
    except InvalidOperation:  # .inf, .nan and base 60
        return loader.construct_yaml_float(node)


def _construct_mapping(loader: _ExactLoader, node: yaml.MappingNode) -> dict[str, object]:
    loader.flatten_mapping(node)
    mapping: dict[str, object] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key is no text", key_node.start_mark)
        key = str(key_node.value)  # as it is written: a user may be called no, or 7
        if key in mapping:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} is there twice", key_node.start_mark
            )
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


_ExactLoader.add_constructor("tag:yaml.org,2002:float", _construct_decimal)
_ExactLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


class FileLayer:
    """The values of the YAML file."""

    def __init__(self, path: Path, text: str) -> None:
        """Parse ``text``, the content of ``path``.

        Raises:
            SettingsError: it is no YAML mapping.
        """
        self._path = path
        try:
            loader = _ExactLoader(text)
            self._root: Any = loader.get_single_node()
            _keep_as_written(self._root, "kafka")
            document: object = {} if self._root is None else loader.construct_document(self._root)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise _no_yaml(path, error) from None
        if document is None:
            document = {}
        if not isinstance(document, dict):
            raise SettingsError.of(path, "holds no mapping", "keys with values, in YAML")
        self.document: dict[str, Any] = document

    def source_of(self, location: Sequence[str]) -> str:
        """Return the file, with the line of the key or else of the nearest section around it."""
        node: yaml.Node | None = self._root
        line = None
        for name in location:
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            found = next((pair for pair in pairs if pair[0].value == name), None)
            if found is None:
                break
            line, node = found[0].start_mark.line + 1, found[1]
        return str(self._path) if line is None else f"{self._path} line {line}"


def _keep_as_written(root: yaml.Node | None, section: str) -> None:
    """Let values below this key be text where YAML has other types: 010 and True are passwords."""
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == section and isinstance(value, yaml.MappingNode):
            for _, node in value.value:
                if node.tag.rpartition(":")[2] in ("bool", "int", "float", "timestamp"):
                    node.tag = "tag:yaml.org,2002:str"


def read_text(path: Path) -> str:
    """Read the configuration file.

    Raises:
        SettingsError: it can't be read, is too large or is not UTF-8.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError.of(
            path,
            f"can't be read: {error.strerror}{_REMEDIES.get(error.errno or 0, '')}",
            "a YAML file the agent may read",
        ) from None
    if len(raw) > _MAX_FILE_BYTES:
        raise SettingsError.of(path, "is too large", f"{_MAX_FILE_BYTES} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SettingsError.of(path, f"is not UTF-8 text (byte {error.start})", "YAML in UTF-8") from None


def _no_yaml(path: Path, error: Exception) -> SettingsError:
    mark = getattr(error, "problem_mark", None)
    where = str(path) if mark is None else f"{path} line {mark.line + 1} column {mark.column + 1}"
    what = getattr(error, "problem", None) or "it is nested too deeply or has characters YAML does not allow"
    return SettingsError.of(where, f"is not usable YAML: {what}", "YAML")


class EnvironmentLayer:
    """The values of the variables ``KQUOTA_A__B``."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take the variables with our prefix; ``problems`` holds those that are for no key.

        Raises:
            SettingsError: the value of a variable should be JSON and is not.
        """
        self.variables = {
            name: text
            for name, text in environ.items()
            if name.startswith(ENV_PREFIX) and name not in RESERVED_VARIABLES
        }
        known = [name.upper() for name in Settings.model_fields]
        allowed = f"{ENV_PREFIX} and one of {', '.join(known)}"
        self.problems = [
            Problem(f"environment variable {name}", "", None, "is for no key", allowed)
            for name in self.variables
            if name.removeprefix(ENV_PREFIX).split(_DELIMITER)[0] not in known
        ]
        self.document = self._document() if self.variables else {}

    def _document(self) -> dict[str, Any]:
        # pydantic-settings takes a tenth of the start of a command, and few are given a variable.
        from pydantic_settings.exceptions import SettingsError as MalformedVariable  # noqa: PLC0415

        from kquota.settings.environment_source import EnvironmentSource  # noqa: PLC0415

        try:
            return EnvironmentSource(self.variables, ENV_PREFIX, _DELIMITER)()
        except MalformedVariable as error:
            key = str(error).split('"')[1] if '"' in str(error) else ""
            wrong = "is set in the environment to something that is no JSON"
            example = 'JSON, such as {"type": "MinFreePercentage", "level": 5}'
            raise SettingsError.of("the environment", wrong, example, key) from None

    def source_of(self, location: Sequence[str]) -> str | None:
        """Return the variable that gave this key, or None where it is not from the environment."""
        node: object = self.document
        for name in location:
            if not isinstance(node, dict) or name not in node:
                return None
            node = node[name]
        for length in range(len(location), 0, -1):
            parts = [name.replace(".", "_") for name in location[:length]]
            variable = ENV_PREFIX + _DELIMITER.join(parts).upper()
            if variable in self.variables:
                return f"environment variable {variable}"
        return "the environment"


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``below`` with the values of ``above``; mappings in both are merged key by key."""
    both = {
        key: merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, Mapping) and isinstance(below.get(key), Mapping)
    }
    return {**below, **above, **both}


def jsonable(value: Any) -> Any:
    """Return a value of a good configuration in types of JSON; exact numbers are text, which is read back."""
    match value:
        case dict():
            return {key: jsonable(entry) for key, entry in value.items()}
        case list():
            return [jsonable(entry) for entry in value]
        case Decimal():
            return f"{value:f}"
        case _:
            return value
