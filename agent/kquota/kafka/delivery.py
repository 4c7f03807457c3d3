"""The fate of published records: counters, the last error, and whether the connection stands."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kquota.kafka.errors import KafkaFailure, Kind

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class PublicationState:
    """A publisher's state for status and metrics.

    `connected`: the newest outcome was a delivery. `errors` counts records that were not delivered, by
    kind, every kind from the start. `replaced`: records that a newer one of the same key took the place of
    before they were sent. `dropped`: records given up for lack of room.
    """

    connected: bool = False
    delivered: int = 0
    errors: Mapping[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    replaced: int = 0
    dropped: int = 0
    last_failure: KafkaFailure | None = None

    @property
    def standing_failure(self) -> KafkaFailure | None:
        """The newest failure, where nothing was delivered since."""
        return None if self.connected else self.last_failure


class DeliveryTally:
    """Counts outcomes; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = PublicationState()

    def delivered(self) -> None:
        """A record is in the log."""
        with self._lock:
            self._state = replace(self._state, delivered=self._state.delivered + 1, connected=True)

    def failed(self, failure: KafkaFailure) -> None:
        """A record could not be delivered."""
        with self._lock:
            errors = {**self._state.errors, failure.kind: self._state.errors[failure.kind] + 1}
            self._state = replace(self._state, errors=errors, last_failure=failure, connected=False)

    def disconnected(self, failure: KafkaFailure) -> None:
        """The connection failed; the fate of the records is not known yet."""
        with self._lock:
            self._state = replace(self._state, last_failure=failure, connected=False)

    def replaced(self) -> None:
        """A record gave way to a newer one."""
        with self._lock:
            self._state = replace(self._state, replaced=self._state.replaced + 1)

    def dropped(self, count: int = 1) -> None:
        """Records were given up for lack of room."""
        with self._lock:
            self._state = replace(self._state, dropped=self._state.dropped + count)

    def state(self) -> PublicationState:
        """The tally as it stands."""
        return self._state
