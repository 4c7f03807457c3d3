"""Policies to try, from YAML. Limits are in the schema of the agent's configuration (limits.schema.json)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import yaml

from kquota.policy.decision import FallbackAction, Scope
from kquota.policy.limits import InvalidLimit, Limit, LimitPair, exact_number

_DEFAULT_HARD = Limit.parse({"type": "MinFreePercentage", "level": 5})
_DEFAULT_SOFT = Limit.parse({"type": "MinFreePercentage", "level": 15})
_E = TypeVar("_E", bound=StrEnum)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._%+-]{0,62}")
_RECORDED = "recorded"
LIMITS = ("hard_limit_type", "hard_limit_level", "soft_limit_type", "soft_limit_level")
"""The columns of the table usage that `recorded_limits` reads."""
NOT_JUDGED = "the recorded limits can't be judged"
_POLICY_KEYS = (
    *("name", "limits", "brokers", "release_margin_ratio"),
    *("scope", "fallback_action", "staleness_seconds"),
)


class InvalidPolicy(ValueError):
    """A policy file that can't be used; the text names file, key, value and the allowed values."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a broker, and of its volumes by mount point; None stands for the broker's limit."""

    hard: Limit = _DEFAULT_HARD
    soft: Limit = _DEFAULT_SOFT
    volumes: Mapping[str, tuple[Limit | None, Limit | None]] = field(default_factory=dict)

    def pair(self, mount_point: str | None) -> LimitPair:
        """Return the limits of the volume mounted there; None is a volume whose mount point is not known."""
        hard, soft = self.volumes.get(mount_point or "", (None, None))
        return LimitPair(soft=soft or self.soft, hard=hard or self.hard)

    def to_document(self) -> dict[str, object]:
        """Return the form of limits.schema.json."""
        volumes = {
            mount_point: {
                name: limit.to_document()
                for name, limit in (("hard", hard), ("soft", soft))
                if limit is not None
            }
            for mount_point, (hard, soft) in sorted(self.volumes.items())
        }
        return {"hard": self.hard.to_document(), "soft": self.soft.to_document(), "volumes": volumes}


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy to try. With `limits` None every volume keeps the limits that its records carry."""

    name: str
    limits: Limits | None = None
    brokers: Mapping[int, Limits] = field(default_factory=dict)
    release_margin: Fraction = Fraction(1, 10)
    fallback_action: FallbackAction = FallbackAction.PAUSE
    staleness_seconds: float = 60.0
    scope: Scope = Scope.CLUSTER

    def pair(self, broker_id: int, mount_point: str | None) -> LimitPair | None:
        """Return the limits of a volume under this policy; None where the recorded ones hold."""
        limits = self.brokers.get(broker_id, self.limits)
        return None if limits is None else limits.pair(mount_point)


@lru_cache(maxsize=10_000)
def recorded_limits(
    hard_type: str | None, hard_level: float | None, soft_type: str | None, soft_level: float | None
) -> LimitPair | None:
    """Return the limits that a record carries; None if they can't be judged."""
    try:
        return LimitPair(
            soft=Limit.parse({"type": soft_type, "level": soft_level}),
            hard=Limit.parse({"type": hard_type, "level": hard_level}),
        )
    except InvalidLimit:
        return None


def read_policies(path: Path) -> tuple[Policy, ...]:
    """Read a file of policies.

    Raises:
        InvalidPolicy: the file can't be read, or something in it is not allowed.
    """
    try:
        document = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidPolicy(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidPolicy(f"{path}: not YAML: {error}") from None
    return parse_policies(document, str(path))


def parse_policies(document: object, where: str) -> tuple[Policy, ...]:
    """Read policies from parsed YAML; see read_policies."""
    top = _mapping(document, where, ("policies",))
    entries = top.get("policies")
    if not isinstance(entries, list) or not entries:
        raise InvalidPolicy(f"{where}: policies must be a list of at least one policy")
    policies = tuple(_policy(entry, f"{where}: policies[{index}]") for index, entry in enumerate(entries))
    names = [policy.name for policy in policies]
    for name in names:
        if names.count(name) > 1:
            raise InvalidPolicy(f"{where}: two policies are called {name!r}; names must differ")
    return policies


def _policy(entry: object, where: str) -> Policy:
    fields = _mapping(entry, where, _POLICY_KEYS)
    name = fields.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidPolicy(f"{where}.name: {name!r} is not a name of 1 to 63 letters, digits and ' ._%+-'")
    where += f" ({name})"
    limits = fields.get("limits", _RECORDED)
    brokers = _mapping(fields.get("brokers", {}), f"{where}.brokers")
    return Policy(
        name=name,
        limits=None if limits == _RECORDED else _limits(limits, f"{where}.limits"),
        brokers={
            _broker_id(key, f"{where}.brokers"): _limits(value, f"{where}.brokers.{key}")
            for key, value in brokers.items()
        },
        release_margin=_number(fields, "release_margin_ratio", where, Fraction(1, 10), 0, 1),
        fallback_action=_one_of(fields, "fallback_action", where, FallbackAction.PAUSE),
        staleness_seconds=float(_number(fields, "staleness_seconds", where, Fraction(60), 1, 86_400)),
        scope=_one_of(fields, "scope", where, Scope.CLUSTER),
    )


def _one_of(fields: Mapping[object, object], key: str, where: str, default: _E) -> _E:
    value, allowed = fields.get(key, default), {one.value: one for one in type(default)}
    if not isinstance(value, str) or value not in allowed:
        raise InvalidPolicy(f"{where}.{key}: {value!r} is none of {', '.join(allowed)}")
    return allowed[value]


def _limits(value: object, where: str) -> Limits:
    fields = _mapping(value, where, ("hard", "soft", "volumes"))
    volumes = {}
    for mount_point, own in _mapping(fields.get("volumes", {}), f"{where}.volumes").items():
        place = f"{where}.volumes.{mount_point}"
        if not isinstance(mount_point, str) or not mount_point.startswith("/"):
            raise InvalidPolicy(f"{place}: {mount_point!r} is not a mount point, an absolute path")
        pair = _mapping(own, place, ("hard", "soft"))
        volumes[mount_point] = (
            None if pair.get("hard") is None else _limit(pair["hard"], f"{place}.hard"),
            None if pair.get("soft") is None else _limit(pair["soft"], f"{place}.soft"),
        )
    limits = Limits(
        hard=_limit(fields["hard"], f"{where}.hard") if "hard" in fields else _DEFAULT_HARD,
        soft=_limit(fields["soft"], f"{where}.soft") if "soft" in fields else _DEFAULT_SOFT,
        volumes=volumes,
    )
    places: tuple[str | None, ...] = (None, *volumes)
    for own_place in places:
        try:
            limits.pair(own_place)
        except InvalidLimit as error:
            raise InvalidPolicy(
                f"{where}{'' if own_place is None else f'.volumes.{own_place}'}: {error}"
            ) from None
    return limits


def _limit(value: object, where: str) -> Limit:
    fields = {str(key): given for key, given in _mapping(value, where, ("type", "level")).items()}
    level = fields.get("level")
    if isinstance(level, str):
        try:
            fields["level"] = Decimal(level)
        except InvalidOperation:
            raise InvalidPolicy(f"{where}.level: {level!r} is not a number") from None
    try:
        return Limit.parse(fields)
    except InvalidLimit as error:
        raise InvalidPolicy(f"{where}: {error}") from None


def _number(
    fields: Mapping[object, object], key: str, where: str, default: Fraction, low: int, high: int
) -> Fraction:
    if key not in fields:
        return default
    number = exact_number(fields[key])
    if number is None or not low <= number <= high:
        raise InvalidPolicy(f"{where}.{key}: {fields[key]!r} is not a number between {low} and {high}")
    return number


def _broker_id(key: object, where: str) -> int:
    if isinstance(key, bool) or not isinstance(key, int) or key < 0:
        raise InvalidPolicy(f"{where}: {key!r} is not a broker id")
    return key


def _mapping(value: object, where: str, allowed: tuple[str, ...] | None = None) -> Mapping[object, object]:
    if not isinstance(value, dict):
        raise InvalidPolicy(
            f"{where}: must be a mapping{'' if allowed is None else ' of ' + ', '.join(allowed)}"
        )
    for key in value:
        if allowed is not None and key not in allowed:
            raise InvalidPolicy(f"{where}: {key!r} is none of {', '.join(allowed)}")
    return value
