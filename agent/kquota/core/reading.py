"""The view of a topic that is read from its beginning, and perhaps again while the view is in use."""

from __future__ import annotations

from datetime import datetime, timedelta

from kquota.core.records import Event, UsageEvent
from kquota.core.view import ClusterView, FoldResult, NoRecord


class Reading:
    """The view that counts (``view``), and the one that records are folded into (``target``).

    Old records must not pass for the present while the topic is read again. Of the same topic they make a
    view of their own, which takes the place of the first one at the end. A topic that was deleted and created
    again reverts nothing that is known: its records count at once, except those that are older.
    """

    def __init__(self, future_tolerance: timedelta) -> None:
        self.view = ClusterView(future_tolerance)
        self._next: ClusterView | None = None
        self._older_is_no_news = False

    @property
    def target(self) -> ClusterView:
        """Return the view that the next records belong to."""
        return self._next or self.view

    def know(self, cluster_id: str | None, listed: frozenset[int] | None) -> None:
        """Take in the cluster's id, if it has been reported, and the brokers that it lists."""
        for view in (self.view, self.target):
            view.know_cluster(cluster_id)
            view.listed = listed or frozenset()

    def fold(self, event: Event, now: datetime) -> FoldResult:
        """Take in one record."""
        if self._older_is_no_news and isinstance(event, UsageEvent):
            known = self.view.record_of(event.broker_id, now)
            if not isinstance(known, NoRecord) and event.record.snapshot_at < known.snapshot_at:
                return FoldResult.SUPERSEDED
        return self.target.fold(event, now)

    def begin_again(self, *, same_topic: bool) -> None:
        """Take in that the topic is read from its beginning again, or another one of its name is."""
        self._older_is_no_news = not same_topic
        if not same_topic:
            return
        view = self.view
        self._next = ClusterView(view.future_tolerance, cluster_id=view.cluster_id, listed=view.listed)

    def reached_end(self, now: datetime) -> None:
        """Take in that the topic has been read to its end."""
        self._older_is_no_news = False
        if self._next is not None:
            self._next.take_over(self.view, now)
            self.view, self._next = self._next, None
