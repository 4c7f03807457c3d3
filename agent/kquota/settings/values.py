"""The kinds of values in the configuration: how each is read, and the allowed values in words.

Every leaf of the model carries an :class:`Allowed`; it is the text that an operator sees with a value that
was refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from kquota.core.decision import FallbackAction, Mode
from kquota.core.limits import InvalidLimit, Limit, exact_number, json_number
from kquota.settings.problems import Allowed, Finding, refuse, show

_DECIMAL = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,20})?", re.ASCII)
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen on; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class LogLevel(StrEnum):
    """The level of logging: this level and graver ones."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


def exact(value: object) -> Fraction:
    """Return a number as YAML, JSON or an environment variable gives it, exactly."""
    if isinstance(value, str):
        if not _DECIMAL.fullmatch(value):
            raise ValueError
        value = Decimal(value)
    number = exact_number(value)
    if number is None:
        raise ValueError
    return number


def _seconds(minimum: Fraction, maximum: int) -> Callable[[object], float]:
    def read(value: object) -> float:
        number = exact(value)
        if not minimum <= number <= maximum:
            raise ValueError
        return float(number)

    return read


def _integer(minimum: int, maximum: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        number = exact(value)
        if number.denominator != 1 or not minimum <= number <= maximum:
            raise ValueError
        return int(number)

    return read


def _optional(read: Callable[[object], int]) -> Callable[[object], int | None]:
    return lambda value: None if value is None else read(value)


def _one_of(choices: type[StrEnum], *, any_case: bool = False) -> Callable[[object], StrEnum]:
    def read(value: object) -> StrEnum:
        text = value if isinstance(value, str) else ""
        return choices(text.upper() if any_case else text)

    return read


def _ratio(value: object) -> Fraction:
    number = exact(value)
    if not 0 <= number <= 1:
        raise ValueError
    return number


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError


def _absolute_path(value: object) -> Path:
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise ValueError
    path = Path(value)
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError
    return path


def _volume_path(value: object) -> str:
    if not isinstance(value, str) or not value.startswith("/") or value.startswith("//"):
        raise ValueError
    path = PurePosixPath(value)
    if str(path) != value or ".." in path.parts:
        raise ValueError
    return value


def _topic_name(value: object) -> str:
    if not isinstance(value, str) or not _TOPIC_NAME.fullmatch(value) or value in (".", ".."):
        raise ValueError
    return value


def _listen_address(value: object) -> ListenAddress:
    host, separator, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if host.startswith("[") and host.endswith("]") and ":" in host:
        host = host[1:-1]
    elif not _HOST_NAME.fullmatch(host):
        raise ValueError
    if not separator or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError
    return ListenAddress(host, int(port))


# Limits are published as JSON, whose numbers most readers take for binary64.
_MAX_LEVEL = 2**53
_LEVEL = f"a number of bytes between 0 and {_MAX_LEVEL}, for MinFreePercentage a percentage between 0 and 100"
_EXACT_LEVEL = "a whole number, or one with at most 15 digits"
_LIMIT_TYPES = "ConsumedSpace, MinFreeBytes or MinFreePercentage"


def _limit(value: object) -> Limit:
    if isinstance(value, Limit):
        return value
    if not isinstance(value, Mapping):
        raise ValueError
    findings = [
        Finding((str(key),), "is no known key", "type, level")
        for key in value
        if key not in ("type", "level")
    ]
    findings += [
        Finding((key,), "is missing", allowed)
        for key, allowed in (("type", _LIMIT_TYPES), ("level", _LEVEL))
        if key not in value
    ]
    if "type" in value:
        try:
            Limit.parse({"type": value["type"], "level": 0})
        except InvalidLimit:
            findings.append(Finding.of_value(("type",), value["type"], _LIMIT_TYPES))
    if "level" in value:
        try:
            level = exact(value["level"])
            # an unknown type is reported above; the level is then judged as bytes
            known = not any(finding.key == ("type",) for finding in findings)
            Limit.parse({"type": value["type"] if known else "MinFreeBytes", "level": level})
        except (InvalidLimit, ValueError):
            findings.append(Finding.of_value(("level",), value["level"], _LEVEL))
        else:
            findings += _inexact(value["level"], level)
    if findings:
        refuse(findings)
    return Limit.parse({"type": value["type"], "level": level})


def _inexact(value: object, level: Fraction) -> list[Finding]:
    """Return that other agents would read another level in our record than this one."""
    if level > _MAX_LEVEL:
        return [Finding.of_value(("level",), value, _LEVEL)]
    if exact(float(level)) == level:
        return []
    shown = show(value)
    wrong = f"is {shown}, and would be published as {float(level)!r}"
    return [Finding(("level",), wrong, _EXACT_LEVEL, shown)]


def _limit_or_none(value: object) -> Limit | None:
    return None if value is None else _limit(value)


def _limit_document(limit: Limit | None) -> dict[str, object] | None:
    return None if limit is None else limit.to_document()


_text = PlainSerializer(str, return_type=str)
_DAY_SECONDS = 86_400

Seconds = Annotated[
    float,
    PlainValidator(_seconds(Fraction(1, 1000), _DAY_SECONDS)),
    Allowed(f"a number of seconds between 0.001 and {_DAY_SECONDS}"),
]
SecondsOrZero = Annotated[
    float,
    PlainValidator(_seconds(Fraction(0), _DAY_SECONDS)),
    Allowed(f"a number of seconds between 0 and {_DAY_SECONDS}"),
]
Ratio = Annotated[
    Fraction,
    PlainValidator(_ratio),
    PlainSerializer(json_number),
    Allowed("a number between 0 and 1"),
]
Boolean = Annotated[bool, PlainValidator(_boolean), Allowed("true or false")]
AbsolutePath = Annotated[
    Path, PlainValidator(_absolute_path), _text, Allowed("an absolute path without '..' in it")
]
AbsolutePathOrNone = Annotated[
    Path | None,
    PlainValidator(lambda value: None if value is None else _absolute_path(value)),
    PlainSerializer(lambda path: None if path is None else str(path)),
    Allowed("an absolute path without '..' in it; or null, for plain HTTP without users"),
]
VOLUME_PATH = (
    "a path on the volume, its mount point or a log dir: an absolute path without a slash at its end, such as"
    " /var/lib/kafka"
)
VolumePath = Annotated[str, PlainValidator(_volume_path), Allowed(VOLUME_PATH)]
TopicName = Annotated[
    str,
    PlainValidator(_topic_name),
    Allowed("1 to 249 letters, digits, dots, underscores and hyphens"),
]
Listen = Annotated[
    ListenAddress,
    PlainValidator(_listen_address),
    _text,
    Allowed(
        "host:port with a port between 0 (take a free one) and 65535, such as 127.0.0.1:9464 or [::1]:9464"
    ),
]
LimitValue = Annotated[
    Limit,
    PlainValidator(_limit),
    PlainSerializer(_limit_document),
    Allowed(f"a mapping with type ({_LIMIT_TYPES}) and level"),
]
LimitOrNone = Annotated[
    Limit | None,
    PlainValidator(_limit_or_none),
    PlainSerializer(_limit_document),
    Allowed(f"a mapping with type ({_LIMIT_TYPES}) and level; or null, for the broker's"),
]
ModeValue = Annotated[Mode, PlainValidator(_one_of(Mode)), _text, Allowed("observe or enforce")]
FallbackValue = Annotated[
    FallbackAction, PlainValidator(_one_of(FallbackAction)), _text, Allowed("pause or open")
]
LogLevelValue = Annotated[
    LogLevel,
    PlainValidator(_one_of(LogLevel, any_case=True)),
    _text,
    Allowed("DEBUG, INFO, WARNING or ERROR"),
]
NodeId = Annotated[
    int | None,
    PlainValidator(_optional(_integer(0, 2**31 - 1))),
    Allowed("a node id: an integer between 0 and 2147483647; or null, to read it from server.properties"),
]
Partitions = Annotated[
    int | None,
    PlainValidator(_optional(_integer(1, 10_000))),
    Allowed("an integer between 1 and 10000; or null, for one per 50 brokers"),
]
ReplicationFactor = Annotated[
    int | None,
    PlainValidator(_optional(_integer(1, 32_767))),
    Allowed("an integer between 1 and 32767; or null, for 3 or the number of brokers where that is less"),
]
Hours = Annotated[
    int, PlainValidator(_integer(1, 1_000_000)), Allowed("an integer of hours between 1 and 1000000")
]
Bytes = Annotated[
    int,
    PlainValidator(_integer(1_048_576, 2**63 - 1)),
    Allowed("an integer of bytes between 1048576 and 9223372036854775807"),
]
