"""The fate of published records: counters, the last error, and whether the connection stands."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kquota.kafka.errors import KafkaFailure, Kind

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class PublicationState:
    """A publisher's state for status and metrics.

    `connected`: the newest outcome was a delivery. `errors` counts records that were not delivered, by
    kind, every kind from the start. `replaced`: records that a newer one of the same key took the place of
    before they were sent. `dropped`: records given up for lack of room.
    """

    connected: bool
    delivered: int
    errors: Mapping[Kind, int]
    replaced: int
    dropped: int
    last_failure: KafkaFailure | None

    @property
    def trouble(self) -> KafkaFailure | None:
        """The newest failure, where nothing was delivered since."""
        return None if self.connected else self.last_failure


class DeliveryTally:
    """Counts outcomes; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connected = False
        self._delivered = 0
        self._errors: Counter[Kind] = Counter(dict.fromkeys(Kind, 0))
        self._replaced = 0
        self._dropped = 0
        self._last_failure: KafkaFailure | None = None

    def delivered(self) -> None:
        """A record is in the log."""
        with self._lock:
            self._delivered += 1
            self._connected = True

    def failed(self, failure: KafkaFailure) -> None:
        """A record could not be delivered."""
        with self._lock:
            self._errors[failure.kind] += 1
            self._last_failure = failure
            self._connected = False

    def disconnected(self, failure: KafkaFailure) -> None:
        """The connection failed; the fate of the records is not known yet."""
        with self._lock:
            self._last_failure = failure
            self._connected = False

    def replaced(self, count: int = 1) -> None:
        """Records gave way to newer ones."""
        with self._lock:
            self._replaced += count

    def dropped(self, count: int = 1) -> None:
        """Records were given up for lack of room."""
        with self._lock:
            self._dropped += count

    def state(self) -> PublicationState:
        """The tally as it stands."""
        with self._lock:
            return PublicationState(
                self._connected,
                self._delivered,
                dict(self._errors),
                self._replaced,
                self._dropped,
                self._last_failure,
            )
