"""How far a topic has been read, by partition."""

from collections.abc import Iterable, Mapping


class ReadingProgress:
    """Positions, and which partitions are still behind the end they had when their reading began.

    A partition has caught up when its position has reached that end, or when the broker reports that there is
    nothing more (compaction and control records leave gaps, so the last record before an end may never come).
    """

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._behind: set[int] = set()
        self._partitions: frozenset[int] = frozenset()

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions being read."""
        return self._partitions

    @property
    def behind(self) -> frozenset[int]:
        """Partitions that have not caught up."""
        return frozenset(self._behind)

    @property
    def positions(self) -> Mapping[int, int]:
        """The next offset to be read of each partition of which anything is known."""
        return dict(self._positions)

    def begin(self, partitions: Iterable[int]) -> frozenset[int]:
        """Read these partitions too; returns those that are new."""
        new = frozenset(partitions) - self._partitions
        self._partitions |= new
        self._behind |= new
        return new

    def restart(self) -> None:
        """Forget everything: the topic is read from its beginning again."""
        self._positions.clear()
        self._ends.clear()
        self._behind.clear()
        self._partitions = frozenset()

    def ends_unknown(self) -> frozenset[int]:
        """Partitions whose end is still to be asked for."""
        return frozenset(self._behind - self._ends.keys())

    def end_is(self, partition: int, end: int) -> None:
        """The partition ended at `end` when asked. Only the first answer counts, or a busy topic is never
        caught up.
        """
        if partition in self._partitions:
            self._ends.setdefault(partition, end)
            self._settle(partition)

    def read(self, partition: int, offset: int) -> None:
        """The record at `offset` was read."""
        self._advance(partition, offset + 1)

    def reached_end(self, partition: int, offset: int) -> None:
        """The broker reports that `offset` is the end at the moment."""
        if partition in self._partitions:
            self._behind.discard(partition)
            self._advance(partition, offset)

    def _advance(self, partition: int, position: int) -> None:
        if partition in self._partitions:
            self._positions[partition] = max(position, self._positions.get(partition, 0))
            self._settle(partition)

    def _settle(self, partition: int) -> None:
        end, position = self._ends.get(partition), self._positions.get(partition)
        # An end of 0 alone proves nothing: the permission to read may be missing.
        if end is not None and position is not None and position >= end:
            self._behind.discard(partition)
