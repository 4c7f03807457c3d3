"""Log dirs of full volumes are cordoned: Kafka places no new partition there (KIP-1066).

The broker's setting ``cordoned.log.dirs`` has two owners: operators, and the agent, which remembers the log
dirs that it has put there. It takes out no other, and never owns one that was there before.
Source: docs/adr/0030-cordons.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

SETTING = "cordoned.log.dirs"
ALL = "*"
"""The setting's value for all log dirs of the broker."""


class Cordon(StrEnum):
    """The limit from which on a volume's log dirs are cordoned."""

    OFF = "off"
    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class Change:
    """A new value of the setting, in Kafka's order, and the log dirs in it that are the agent's."""

    value: tuple[str, ...]
    ours: frozenset[str]


def log_dirs_to_cordon(
    volumes: Iterable[Volume], since: Cordon, cordoned: frozenset[str], release_margin: Fraction
) -> frozenset[str]:
    """Return the log dirs that the agent wants cordoned; ``cordoned`` are those that it has cordoned.

    A cordon begins at the limit. It ends with the latch of a hard breach, or below the soft limit by
    ``release_margin``, a share of the distance between both limits. A volume that can't be judged, or is
    gone, keeps its own.
    """
    if since is Cordon.OFF:
        return frozenset()
    judged = [(volume, _is_full(volume, since, cordoned, release_margin)) for volume in volumes]
    full = {log_dir for volume, is_full in judged if is_full for log_dir in volume.log_dirs}
    empty = {log_dir for volume, is_full in judged if is_full is False for log_dir in volume.log_dirs}
    return frozenset(full | (cordoned - empty))


def change(present: Sequence[str], ours: frozenset[str], wanted: frozenset[str]) -> Change | None:
    """Return the change that the setting needs, or None.

    ``present`` is the setting's value in force, ``ours`` the log dirs that the agent has put there.
    """
    theirs = [log_dir for log_dir in present if log_dir not in ours]
    mine = frozenset() if ALL in theirs else wanted.difference(theirs)
    value = (*theirs, *sorted(mine))
    return None if set(value) == set(present) and mine == ours else Change(value, mine)


def _is_full(
    volume: Volume, since: Cordon, cordoned: frozenset[str], release_margin: Fraction
) -> bool | None:
    """Whether a volume's log dirs are to be cordoned; None where that can't be judged."""
    if volume.role is not VolumeRole.DATA:
        return False
    if volume.status is not VolumeStatus.OK or volume.limits is None:
        return None
    if volume.latched or since is Cordon.HARD:
        return volume.latched
    was_cordoned = not cordoned.isdisjoint(volume.log_dirs)
    if volume.inodes is not None:
        wanted = volume.inodes.free_at(1 + release_margin if was_cordoned else Fraction(1))
        if volume.inodes.free < wanted:
            return True
    bounds = volume.limits.bounds(volume.capacity_bytes)
    margin_bytes = bounds.hard_bytes - bounds.released_below_bytes(release_margin)
    first_bytes = bounds.soft_bytes - margin_bytes if was_cordoned else bounds.soft_bytes
    return volume.consumed_bytes > first_bytes
