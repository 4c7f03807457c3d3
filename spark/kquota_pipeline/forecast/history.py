"""The history of one volume: its hours, and the looks at its segments. Arrays, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY_HOURS = 24
# A topic is made before it is used: with less than this share of its bytes of now it was as good as empty.
_EMPTY = 0.01
BOUND_HOURS = np.array([1 / 6, 1.0, 6.0, 24.0, 72.0, 168.0, 720.0])
"""The upper bounds of the buckets of `kquota.retention.expiry`, in hours; the last bucket has none."""


@dataclass(frozen=True, slots=True)
class Series:
    """The hours of one volume, in order: epoch hours, crests (bytes), the share of their rate that producers
    were denied (0 to 1), the capacity (bytes), and the id of the volume that was there.
    """

    hours: Ints
    crest_bytes: Floats
    held: Floats
    capacity_bytes: float
    volume_ids: NDArray[np.object_]

    def until(self, hour: float) -> Series:
        """Return what was known at the end of an epoch hour."""
        known = slice(0, int(np.searchsorted(self.hours, hour, "right")))
        return replace(
            self,
            hours=self.hours[known],
            crest_bytes=self.crest_bytes[known],
            held=self.held[known],
            volume_ids=self.volume_ids[known],
        )


@dataclass(frozen=True, slots=True)
class Looks:
    """The last look at the segments of one volume in each hour, in order.

    `leaving_bytes` is [look, bucket]: the bytes that leave by themselves, by the time until then (the buckets
    of BOUND_HOURS, and one for later). `topic_bytes` is [look, topic], and `topic_soon_bytes` the part of it
    that leaves within an hour; 0 where a topic is not among those that the record names. `topic_keep_hours`,
    likewise, are the hours after which its records leave; 0 where none do, or that is not known.
    """

    hours: Ints
    leaving_bytes: Floats
    never_bytes: Floats
    topics: tuple[str, ...]
    topic_bytes: Floats
    topic_soon_bytes: Floats
    topic_keep_hours: Floats | None = None

    @property
    def keep_hours(self) -> Floats:
        """The retention of each topic at the last look, in hours; 0 where it is not known."""
        return np.zeros(len(self.topics)) if self.topic_keep_hours is None else self.topic_keep_hours[-1]

    def kept_longer(self) -> Floats:
        """Return by how many hours longer each topic is kept at the last look than at each, [look, topic]; 0
        where one of the two is not known, or the topic was empty: then no byte of it was kept otherwise.
        """
        if self.topic_keep_hours is None:
            return np.zeros(self.topic_bytes.shape)
        then, now = self.topic_keep_hours, self.keep_hours
        return np.where((then > 0) & (now > 0) & self.filled(), now - then, 0.0)

    def filled(self) -> NDArray[np.bool_]:
        """Return whether each topic held anything at each look, [look, topic].

        Every topic begins with little. With next to nothing for a day or longer it was not used yet.
        """
        some = self.topic_bytes > 0
        more = self.topic_bytes > _EMPTY * self.topic_bytes[-1]
        idle_hours = self.hours[np.argmax(more, axis=0)] - self.hours[np.argmax(some, axis=0)]
        return np.where(idle_hours >= DAY_HOURS, more, some)

    def deleted(self) -> NDArray[np.bool_]:
        """Return whether each topic was deleted: it went with bytes that were not due to leave."""
        last = len(self.hours) - 1 - np.argmax((self.topic_bytes > 0)[::-1], axis=0)
        topics = np.arange(len(self.topics))
        held, due = self.topic_bytes[last, topics], self.topic_soon_bytes[last, topics]
        return np.asarray((self.topic_bytes[-1] <= 0) & (held > 2 * due))

    def until(self, hour: float) -> Looks:
        """Return what was known at the end of an epoch hour."""
        return self._part(slice(0, int(np.searchsorted(self.hours, hour, "right"))))

    def since(self, hour: int) -> Looks:
        """Return the looks from an epoch hour on."""
        return self._part(slice(int(np.searchsorted(self.hours, hour)), None))

    def _part(self, rows: slice) -> Looks:
        return replace(
            self,
            hours=self.hours[rows],
            leaving_bytes=self.leaving_bytes[rows],
            never_bytes=self.never_bytes[rows],
            topic_bytes=self.topic_bytes[rows],
            topic_soon_bytes=self.topic_soon_bytes[rows],
            topic_keep_hours=None if self.topic_keep_hours is None else self.topic_keep_hours[rows],
        )
