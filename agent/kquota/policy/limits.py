"""Soft and hard limits of a volume, in exact arithmetic.

Source: the Strimzi proposal "Cluster Wide Volume Usage Quota Management" (limit types and their
meaning). All amounts are bytes; a percentage is 0..100.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction

# The largest size a record may speak of: a signed 64-bit integer, the proposal's "long".
MAX_BYTES = 2**63 - 1
# Where soft and hard are of different types and leave no throttle zone, a latched volume is released
# this far (share of the capacity) below the hard limit; at most half way to an empty volume, or a hard
# limit within that share of "empty" would never be released.
NO_ZONE_RELEASE_SHARE = Fraction(1, 100)
# A numerator and a positive denominator: whole numbers are compared many times faster than fractions,
# and just as exactly.
Ratio = tuple[int, int]
_NONE: Ratio = (0, 1)
_ALL: Ratio = (1, 1)


class InvalidLimit(ValueError):
    """A limit that can't be judged: unknown type, level out of range, or soft not below hard."""


class LimitType(StrEnum):
    """How a limit's level is to be read."""

    CONSUMED_SPACE = "ConsumedSpace"
    MIN_FREE_BYTES = "MinFreeBytes"
    MIN_FREE_PERCENTAGE = "MinFreePercentage"

    @property
    def counts_free(self) -> bool:
        """Whether the level is an amount of free space, rather than of consumed space."""
        return _READ_AS[self][0]

    @property
    def in_percent(self) -> bool:
        """Whether the level is a percentage of the capacity, rather than bytes."""
        return _READ_AS[self][1]


# All that depends on a type follows from this: here, in the settings, and in the pipeline's columns.
_READ_AS = {
    LimitType.CONSUMED_SPACE: (False, False),
    LimitType.MIN_FREE_BYTES: (True, False),
    LimitType.MIN_FREE_PERCENTAGE: (True, True),
}


def exact_number(value: object) -> Fraction | None:
    """Return ``value`` as an exact fraction, or None where it is no finite number of a sane size.

    Decimal text and floats are read by their shortest decimal form, so 12.5 and 0.1 are exactly
    25/2 and 1/10. The size is bounded before any arithmetic: 1E+999999999 costs nothing.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int):
        return Fraction(value) if abs(value) <= 2 * MAX_BYTES else None
    if not isinstance(value, (Decimal, float)):
        return None
    try:
        number = value if isinstance(value, Decimal) else Decimal(repr(value))
    except InvalidOperation:  # pragma: no cover - repr of a float is always decimal text
        return None
    if number.adjusted() > 19:  # 0 where it is not finite
        return None
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or exponent < -40 or len(digits) > 40:
        return None
    return Fraction(number)


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: a type and a level (bytes, or percent of the capacity).

    The consumption at which a volume stands at the limit is ``(capacity * a + b) / c``, with whole numbers
    that are worked out once: clusters have thousands of volumes and a handful of limits.
    """

    type: LimitType
    level: Fraction
    _line: tuple[int, int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        numerator, denominator = self.level.numerator, self.level.denominator
        unit = 100 * denominator if self.type.in_percent else denominator
        whole, amount = (unit, -numerator) if self.type.counts_free else (0, numerator)
        line = (whole + amount, 0, unit) if self.type.in_percent else (whole, amount, unit)
        object.__setattr__(self, "_line", line)

    @staticmethod
    def parse(document: Mapping[str, object]) -> Limit:
        """Read ``{"type": …, "level": …}``.

        Raises:
            InvalidLimit: the type is none of the three, or the level is no number, negative, larger
                than a 64-bit integer or, as a percentage, above 100. The text has the allowed values.
        """
        type_name, level = document.get("type"), document.get("level")
        try:
            limit_type = LimitType(str(type_name))
        except ValueError:
            allowed = ", ".join(LimitType)
            raise InvalidLimit(f"type {type_name!r} is none of {allowed}") from None
        number = exact_number(level)
        if number is None:
            raise InvalidLimit(f"level {level!r} is not a number between 0 and {MAX_BYTES}")
        return Limit.of(limit_type, number)

    @staticmethod
    def of(limit_type: LimitType, level: Fraction | int) -> Limit:
        """Build a limit, checking the level's range (see :meth:`parse`)."""
        number = Fraction(level)
        if limit_type.in_percent:
            if not 0 <= number <= 100:
                raise InvalidLimit(f"level {number_text(number)} is not a percentage between 0 and 100")
        elif not 0 <= number <= MAX_BYTES:
            raise InvalidLimit(
                f"level {number_text(number)} is not a number of bytes between 0 and {MAX_BYTES}"
            )
        return Limit(limit_type, number)

    def consumed_at_bytes(self, capacity_bytes: int) -> Fraction:
        """Return the consumption, in bytes, at which a volume of this capacity stands at the limit.

        It may be negative (more free space asked for than the volume has) or above the capacity
        (a limit that is never reached).
        """
        return Fraction(*self.consumed_at(capacity_bytes))

    def consumed_at(self, capacity_bytes: int) -> Ratio:
        """Return the same as a numerator and a positive denominator, not reduced."""
        of_capacity, more, denominator = self._line
        return capacity_bytes * of_capacity + more, denominator

    def to_document(self) -> dict[str, object]:
        """Return the JSON form; an integral level stays an integer."""
        return {"type": self.type.value, "level": json_number(self.level)}

    def __str__(self) -> str:
        unit = " %" if self.type.in_percent else " bytes"
        return f"{self.type.value} {number_text(self.level)}{unit}"


def number_text(number: Fraction) -> str:
    """Return the number for people: exact where it is integral, else with 10 significant digits."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.10g}"


def json_number(number: Fraction) -> int | float:
    """Return the number as JSON writes it."""
    return number.numerator if number.denominator == 1 else float(number)


@dataclass(frozen=True, slots=True)
class LimitPair:
    """The soft and hard limit that hold for one volume."""

    soft: Limit
    hard: Limit

    def __post_init__(self) -> None:
        check_pair(self.soft, self.hard)

    def headroom(self, capacity_bytes: int, consumed_bytes: int) -> Fraction:
        """Return the headroom of a volume (see :meth:`Bounds.headroom`)."""
        return Fraction(*self.headroom_ratio(capacity_bytes, consumed_bytes))

    def headroom_ratio(self, capacity_bytes: int, consumed_bytes: int) -> Ratio:
        """Return the same as a numerator and a positive denominator, not reduced."""
        soft, hard = self.soft.consumed_at(capacity_bytes), self.hard.consumed_at(capacity_bytes)
        return _headroom(soft, hard, consumed_bytes)

    def bounds(self, capacity_bytes: int) -> Bounds:
        """Convert both limits to bytes consumed on a volume of this capacity."""
        return Bounds(
            self.soft.consumed_at_bytes(capacity_bytes),
            self.hard.consumed_at_bytes(capacity_bytes),
            capacity_bytes,
        )


def check_pair(soft: Limit, hard: Limit) -> None:
    """Refuse a soft limit that is not below the hard limit of the same type.

    Limits of different types can only be compared on a volume; there a pair in the wrong order is
    not an error but leaves no throttle zone (see :class:`Bounds`).

    Raises:
        InvalidLimit: both are of one type and soft is not reached before hard.
    """
    if soft.type is not hard.type:
        return
    below = soft.level > hard.level if soft.type.counts_free else soft.level < hard.level
    if not below:
        order = "more than" if soft.type.counts_free else "less than"
        raise InvalidLimit(
            f"soft limit {soft} must be {order} the hard limit's level, {number_text(hard.level)}"
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """A pair of limits as bytes consumed on one volume."""

    soft_bytes: Fraction
    hard_bytes: Fraction
    capacity_bytes: int

    @property
    def has_throttle_zone(self) -> bool:
        """Whether producers can be slowed before they have to be stopped."""
        return self.soft_bytes < self.hard_bytes

    def headroom(self, consumed_bytes: int) -> Fraction:
        """Return the share left of the way from soft to hard limit: 1 at or below soft, 0 from hard on.

        (hard - consumed) / (hard - soft), clamped to [0, 1]; without a throttle zone 1 below hard.
        """
        soft, hard = self.soft_bytes, self.hard_bytes
        return Fraction(
            *_headroom((soft.numerator, soft.denominator), (hard.numerator, hard.denominator), consumed_bytes)
        )

    def latched(self, consumed_bytes: int, *, was_latched: bool, release_margin: Fraction) -> bool:
        """Return whether the hard breach holds on after this look at the volume.

        It begins at the hard limit and ends only when headroom is above ``release_margin`` (a share
        of the soft-hard distance, 0..1); without a throttle zone, when consumption is more than 1 %
        of the capacity below the hard limit.
        """
        headroom = self.headroom(consumed_bytes)
        if headroom == 0:
            return True
        if not was_latched:
            return False
        if self.has_throttle_zone:
            # a margin of 1 could never be exceeded: being back at the soft limit always releases
            return headroom < 1 and headroom <= release_margin
        return consumed_bytes >= self.released_below_bytes(release_margin)

    def released_below_bytes(self, release_margin: Fraction) -> Fraction:
        """Return the consumption below which a latch is released, under the same margin."""
        if self.has_throttle_zone:
            return self.hard_bytes - release_margin * (self.hard_bytes - self.soft_bytes)
        return self.hard_bytes - min(NO_ZONE_RELEASE_SHARE * self.capacity_bytes, self.hard_bytes / 2)


def _headroom(soft: Ratio, hard: Ratio, consumed_bytes: int) -> Ratio:
    """Return (hard - consumed) / (hard - soft), clamped to [0, 1]; below both limits always 1."""
    (soft_bytes, soft_unit), (hard_bytes, hard_unit) = soft, hard
    left = hard_bytes - consumed_bytes * hard_unit
    if left <= 0:
        return _NONE
    if consumed_bytes * soft_unit <= soft_bytes:
        return _ALL
    # consumption lies between the limits, so there is a throttle zone, and less of it is left than all
    return left * soft_unit, hard_bytes * soft_unit - soft_bytes * hard_unit
