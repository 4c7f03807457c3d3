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
from typing import Annotated, TypeVar

from kquota.formats.signature_headers import SigningMode
from kquota.host.locales import PATH_ALLOWED, path_problem
from kquota.policy.cordon import Cordon
from kquota.policy.decision import FallbackAction, Mode, Scope
from kquota.policy.limits import InvalidLimit, Limit, LimitType, exact_number, json_number
from kquota.settings.problems import Finding, Value, refuse, show

T = TypeVar("T")

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


def _number(minimum: Fraction | int, maximum: int, to: Callable[[Fraction], T]) -> Callable[[object], T]:
    def read(value: object) -> T:
        number = exact(value)
        if not minimum <= number <= maximum:
            raise ValueError
        return to(number)

    return read


def _whole(number: Fraction) -> int:
    if number.denominator != 1:
        raise ValueError
    return int(number)


def _or_none(convert: Callable[[T], object]) -> Callable[[T | None], object]:
    return lambda value: None if value is None else convert(value)


def _integer(minimum: int, maximum: int, what: str = "an integer", *, null: str | None = None) -> Value:
    """Return the mark of an integer, or, with the meaning of ``null``, of an integer or null."""
    text, read = f"{what} between {minimum} and {maximum}", _number(minimum, maximum, _whole)
    return Value(text, read) if null is None else Value(f"{text}; or null, {null}", _or_none(read))


def _one_of(choices: type[StrEnum], *, any_case: bool = False) -> Callable[[object], StrEnum]:
    def read(value: object) -> StrEnum:
        text = value if isinstance(value, str) else ""
        return choices(text.upper() if any_case else text)

    return read


def _signing_mode(value: object) -> StrEnum:
    # YAML 1.1 reads a bare off as false
    return SigningMode.OFF if value is False else _one_of(SigningMode)(value)


def _cordon(value: object) -> StrEnum:
    return Cordon.OFF if value is False else _one_of(Cordon)(value)  # as above


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
    if (problem := path_problem(str(path))) is not None:
        refuse([Finding((), problem, PATH_ALLOWED)])
    return path


def _protected_topic(value: object) -> str:
    if not isinstance(value, str) or not (value == "*" or _TOPIC_NAME.fullmatch(value.removesuffix("*"))):
        raise ValueError
    return value


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
_IN_PERCENT = ", ".join(one for one in LimitType if one.in_percent)
_LEVEL = f"a number of bytes between 0 and {_MAX_LEVEL}, for {_IN_PERCENT} a percentage between 0 and 100"
_EXACT_LEVEL = "a whole number, or one with at most 15 digits"
_LIMIT_TYPES = " or ".join(", ".join(LimitType).rsplit(", ", 1))


def _limit(value: object) -> Limit:
    if isinstance(value, Limit):
        return value
    if not isinstance(value, Mapping):
        raise ValueError
    known = {"type": _LIMIT_TYPES, "level": _LEVEL}
    findings = [
        Finding((str(key),), "is no known key", ", ".join(known)) for key in value if key not in known
    ]
    findings += [Finding((key,), "is missing", allowed) for key, allowed in known.items() if key not in value]
    type_name = value.get("type")
    if "type" in value and type_name not in list(LimitType):
        findings.append(Finding.of_value(("type",), type_name, _LIMIT_TYPES))
    if type_name not in list(LimitType):
        type_name = LimitType.MIN_FREE_BYTES  # it is reported above; the level is then judged as bytes
    if "level" in value:
        try:
            level = exact(value["level"])
            limit = Limit.parse({"type": type_name, "level": level})
        except (InvalidLimit, ValueError):
            findings.append(Finding.of_value(("level",), value["level"], _LEVEL))
        else:
            findings += _inexact(value["level"], level)
    if findings:
        refuse(findings)
    return limit


def _inexact(value: object, level: Fraction) -> list[Finding]:
    """Return that other agents would read another level in our record than this one."""
    if level > _MAX_LEVEL:
        return [Finding.of_value(("level",), value, _LEVEL)]
    if exact(float(level)) == level:
        return []
    shown = show(value)
    wrong = f"is {shown}, and would be published as {float(level)!r}"
    return [Finding(("level",), wrong, _EXACT_LEVEL, shown)]


def _percent(value: object) -> Fraction:
    """Read a percentage that other agents read as the same number in our record."""
    number = exact(value)
    if not 0 <= number <= 100 or exact(float(number)) != number:
        raise ValueError
    return number


_DAY_SECONDS = 86_400
_SECONDS = f"a number of seconds between {{}} and {_DAY_SECONDS}"
_PATH = "an absolute path without '..' in it"
_LIMIT = f"a mapping with type ({_LIMIT_TYPES}) and level"
VOLUME_PATH = (
    "a path on the volume, its mount point or a log dir: an absolute path without a slash at its end, such as"
    " /var/lib/kafka"
)

Seconds = Annotated[float, Value(_SECONDS.format(0.001), _number(Fraction(1, 1000), _DAY_SECONDS, float))]
SecondsOrZero = Annotated[float, Value(_SECONDS.format(0), _number(0, _DAY_SECONDS, float))]
Ratio = Annotated[Fraction, Value("a number between 0 and 1", _number(0, 1, Fraction), json_number)]
Percent = Annotated[
    Fraction, Value("a number between 0 and 100 with at most 15 digits", _percent, json_number)
]
Boolean = Annotated[bool, Value("true or false", _boolean)]
AbsolutePath = Annotated[Path, Value(_PATH, _absolute_path, str)]
AbsolutePathOrNone = Annotated[
    Path | None,
    Value(f"{_PATH}; or null, for plain HTTP", _or_none(_absolute_path), _or_none(str)),
]
SigningFile = Annotated[
    Path | None,
    Value(f"{_PATH}; or null, for the file that kafka: names", _or_none(_absolute_path), _or_none(str)),
]
RevokedFile = Annotated[
    Path | None,
    Value(f"{_PATH}; or null, for no revoked certificate", _or_none(_absolute_path), _or_none(str)),
]
VolumePath = Annotated[str, Value(VOLUME_PATH, _volume_path)]
ProtectedTopic = Annotated[
    str, Value("a topic's name, or the beginning of one with a * behind it", _protected_topic)
]
TopicName = Annotated[str, Value("1 to 249 letters, digits, dots, underscores and hyphens", _topic_name)]
Listen = Annotated[
    ListenAddress,
    Value(
        "host:port with a port between 0 (take a free one) and 65535, such as 127.0.0.1:9464 or [::1]:9464",
        _listen_address,
        str,
    ),
]
LimitValue = Annotated[Limit, Value(_LIMIT, _limit, Limit.to_document)]
LimitOrNone = Annotated[
    Limit | None,
    Value(f"{_LIMIT}; or null, for the broker's", _or_none(_limit), _or_none(Limit.to_document)),
]
ModeValue = Annotated[Mode, Value("observe or enforce", _one_of(Mode), str)]
FallbackValue = Annotated[FallbackAction, Value("pause, open or bounded", _one_of(FallbackAction), str)]
ScopeValue = Annotated[Scope, Value("cluster or volume", _one_of(Scope), str)]
CordonValue = Annotated[Cordon, Value("off, soft or hard", _cordon, str)]
SigningModeValue = Annotated[SigningMode, Value("off, accept or required", _signing_mode, str)]
LogLevelValue = Annotated[
    LogLevel, Value("DEBUG, INFO, WARNING or ERROR", _one_of(LogLevel, any_case=True), str)
]
NodeId = Annotated[
    int | None, _integer(0, 2**31 - 1, "a node id: an integer", null="to read it from server.properties")
]
Partitions = Annotated[int | None, _integer(1, 10_000, null="for one per 50 brokers")]
FewPartitions = Annotated[int, _integer(1, 10_000)]
ReplicationFactor = Annotated[
    int | None, _integer(1, 32_767, null="for 3 or the number of brokers where that is less")
]
Hours = Annotated[int, _integer(1, 1_000_000, "an integer of hours")]
Bytes = Annotated[int, _integer(1_048_576, 2**63 - 1, "an integer of bytes")]
FilesPerSecond = Annotated[int, _integer(1, 1_000_000, "an integer of files per second")]
BytesPerSecond = Annotated[int, _integer(1, 2**63 - 1, "an integer of bytes per second")]
