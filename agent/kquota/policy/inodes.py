"""Inodes: a file system out of them refuses new files, and so new segments, though bytes are free.

    headroom = (free - hard) / (soft - hard), clamped to 0 … 1; hard and soft are shares of all inodes

Source: docs/adr/0007-volumes-and-limits.md. The volume's headroom is the smaller one, of bytes
and of inodes. File systems that make inodes as they need them have no such limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from kquota.policy.limits import MAX_BYTES, InvalidLimit, Ratio, exact_number, json_number, number_text


class InodeLimits(NamedTuple):
    """The free inodes, in percent of all, from which producers are slowed (soft) and paused (hard)."""

    soft_free_percent: Fraction
    hard_free_percent: Fraction

    @staticmethod
    def of(soft_free_percent: object, hard_free_percent: object) -> InodeLimits:
        """Check both.

        Raises:
            InvalidLimit: one is no percentage, or soft is not reached before hard. The text has the allowed
                values.
        """
        numbers = []
        for name, value in (("soft", soft_free_percent), ("hard", hard_free_percent)):
            number = exact_number(value)
            if number is None or not 0 <= number <= 100:
                raise InvalidLimit(
                    f"the {name} limit of inodes, {value!r}, is not a percentage between 0 and 100"
                )
            numbers.append(number)
        soft, hard = numbers
        if soft <= hard:
            raise InvalidLimit(
                f"the soft limit of inodes, {number_text(soft)} % free, must be more than the hard one,"
                f" {number_text(hard)} %"
            )
        return InodeLimits(soft, hard)


class Inodes(NamedTuple):
    """The inodes of a volume with a fixed number of them: all, those that are free, and the limits."""

    total: int
    free: int
    limits: InodeLimits

    def headroom_ratio(self) -> Ratio:
        """Return the headroom as a numerator and a positive denominator, not reduced."""
        # times 100 and both denominators: whole numbers alone
        soft, hard = self.limits
        unit = 100 * soft.denominator * hard.denominator
        hard_free = self.total * hard.numerator * soft.denominator
        soft_free = self.total * soft.numerator * hard.denominator
        left = self.free * unit - hard_free
        if left <= 0:
            return 0, 1
        return (1, 1) if left >= soft_free - hard_free else (left, soft_free - hard_free)

    def headroom(self) -> Fraction:
        """Return the share left of the way from soft to hard limit: 1 at or above soft, 0 from hard on."""
        return Fraction(*self.headroom_ratio())

    def latched(self, *, was_latched: bool, release_margin: Fraction) -> bool:
        """Return whether a hard breach holds on: until headroom is above the margin (0..1)."""
        headroom = self.headroom()
        return headroom == 0 or (was_latched and headroom < 1 and headroom <= release_margin)

    def free_at(self, headroom: Fraction) -> int:
        """Return the fewest free inodes at which the headroom, were it not clamped, is no less than this."""
        soft, hard = self.limits
        return ceil(self.total * (hard + headroom * (soft - hard)) / 100)

    def to_document(self) -> dict[str, object]:
        """Return the JSON form in a usage record."""
        return {
            "Total": self.total,
            "Free": self.free,
            "SoftFreePercentage": json_number(self.limits.soft_free_percent),
            "HardFreePercentage": json_number(self.limits.hard_free_percent),
        }


def _whole(value: object) -> int | None:
    """Return a whole number, as JSON may also write it with an exponent; None where it is none."""
    number = value if type(value) is int else exact_number(value)
    return None if number is None or number.denominator != 1 else number.numerator


def inodes_field(value: object) -> tuple[Inodes | None, str | None]:
    """Return the inodes that a usage record names, or the problem of a form that can't be judged."""
    if not isinstance(value, Mapping):
        return None, "Inodes: must be a JSON object"
    total, free = _whole(value.get("Total")), _whole(value.get("Free"))
    if total is None or free is None or not (0 <= free <= total and 0 < total <= MAX_BYTES):
        return None, f"Inodes: Free and Total must be whole numbers, 0 <= Free <= Total <= {MAX_BYTES}"
    soft, hard = value.get("SoftFreePercentage"), value.get("HardFreePercentage")
    try:
        return Inodes(total, free, _limits(soft, hard)), None
    except (InvalidLimit, TypeError) as error:  # TypeError: a list or an object has no hash
        return None, f"Inodes: {error}"


@lru_cache(maxsize=64)
def _limits(soft: object, hard: object) -> InodeLimits:
    """Read limits once: the records of a cluster bring the same again and again."""
    return InodeLimits.of(soft, hard)
