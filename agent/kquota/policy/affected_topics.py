"""Which volumes name their topics: from the soft limit on, and they are looked for a little before it.

Pure, like the core: the volumes come in as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kquota.policy.topic_scope import MAX_TOPICS, MAX_TOPICS_BYTES
from kquota.policy.volume import Volume, VolumeRole, VolumeStatus

# The first list is there within a fraction of a second. A volume this near to its limit, as a share of its
# capacity or in seconds at its present rate, gets one, so that the report of the limit has it.
NEAR_SHARE = Fraction(1, 20)
NEAR_SECONDS = 60.0
# A name in a record has two quotes and a comma besides its letters.
_BYTES_BESIDE_A_NAME = 3


def log_dirs_near_a_limit(volumes: Iterable[Volume]) -> frozenset[str]:
    """Return the log dirs of the volumes that are over their soft limit, or will be soon."""
    return frozenset(log_dir for volume in volumes if _is_near(volume) for log_dir in volume.log_dirs)


def _is_near(volume: Volume) -> bool:
    if volume.role is not VolumeRole.DATA or volume.status is not VolumeStatus.OK or volume.limits is None:
        return False
    bounds = volume.limits.bounds(volume.capacity_bytes)
    left_bytes = min(bounds.soft_bytes, bounds.hard_bytes) - volume.consumed_bytes
    if volume.latched or left_bytes <= NEAR_SHARE * volume.capacity_bytes:
        return True
    inodes = volume.inodes
    if inodes is not None and inodes.free - inodes.free_at(Fraction(1)) <= NEAR_SHARE * inodes.total:
        return True
    return any(seconds is not None and seconds <= NEAR_SECONDS for seconds in volume.seconds_to_limits())


def with_topics_at_stake(volumes: Sequence[Volume]) -> tuple[Volume, ...]:
    """Return the volumes, of which only those over their soft limit or latched name their topics.

    Where there are too many topics for a volume or for the record, the fullest volumes name theirs.
    """
    left_bytes = MAX_TOPICS_BYTES
    named = list(volumes)
    for index in sorted(range(len(named)), key=lambda index: _headroom(named[index])):
        topics = named[index].topics
        if topics is None:
            continue
        size_bytes = sum(map(len, topics)) + _BYTES_BESIDE_A_NAME * len(topics)
        if _headroom(named[index]) < 1 and len(topics) <= MAX_TOPICS and size_bytes <= left_bytes:
            left_bytes -= size_bytes
        else:
            named[index] = named[index]._replace(topics=None)
    return tuple(named)


def _headroom(volume: Volume) -> Fraction:
    """Return the headroom of a volume that can hold producers, or 1."""
    headroom = volume.headroom() if volume.role is VolumeRole.DATA else None
    return Fraction(1) if headroom is None else headroom
