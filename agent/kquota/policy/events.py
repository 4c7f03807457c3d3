"""Events: the meaning of records of our topics, as values; also of those that do not count."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kquota.policy.timestamps import format_utc
from kquota.policy.usage import UsageRecord


def author_sentence(actor: str, typed: str | None) -> str:
    """Return the author of an order, for people."""
    return (actor or "an unnamed user") + (f", typed as {typed}" if typed else "")


class HoldAction(StrEnum):
    """The state at which an operator holds the cluster."""

    PAUSE = "pause"
    OPEN = "open"


class BrokerOrder(StrEnum):
    """The orders that an operator may give about one broker."""

    QUARANTINE = "quarantine"  # no vote except on itself
    MAINTENANCE = "maintenance"  # a planned stop: its record stays fresh


@dataclass(frozen=True, slots=True)
class OrderTerms:
    """The author of an order, its reason, and its end.

    The author of a signed order is its signer. Then ``typed`` is the name in its value, if that is another
    one.
    """

    until: datetime
    reason: str
    actor: str
    typed: str | None = None

    def in_force(self, now: datetime) -> bool:
        """Whether the order still holds; at ``until`` it has ended."""
        return now < self.until

    @property
    def author(self) -> str:
        """The author for people, with the name that was typed where it is another one."""
        return author_sentence(self.actor, self.typed)

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        typed = {} if self.typed is None else {"TypedActor": self.typed}
        return {"Until": format_utc(self.until), "Reason": self.reason, "Actor": self.actor, **typed}


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator's hold on the whole cluster."""

    action: HoldAction
    note: OrderTerms

    def to_document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {"Action": self.action.value, **self.note.to_document()}


@dataclass(frozen=True, slots=True)
class Decommission:
    """A broker is gone for good: its records up to ``at``, when the order was appended, are forgotten."""

    at: datetime
    reason: str
    actor: str
    typed: str | None = None

    @property
    def author(self) -> str:
        """The author for people, as of a note."""
        return author_sentence(self.actor, self.typed)


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """A broker's well-formed usage record."""

    broker_id: int
    record: UsageRecord


@dataclass(frozen=True, slots=True)
class TombstoneEvent:
    """A broker's record was removed: it is decommissioned, or a client pretends so.

    ``appended_at`` is when the topic took that in, by its leader's clock; None in a replay.
    """

    broker_id: int
    signer: str | None = None
    appended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MalformedEvent:
    """A record that must not be used; ``broker_id`` is None where it is an operator's."""

    broker_id: int | None
    key: str
    problem: str


@dataclass(frozen=True, slots=True)
class HoldEvent:
    """A hold was set, or (None) released; ``signer`` is who is known to have written the record."""

    hold: Hold | None
    signer: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerOrderEvent:
    """An order about one broker was given, or (None) withdrawn."""

    order: BrokerOrder
    broker_id: int
    note: OrderTerms | None
    signer: str | None = None


@dataclass(frozen=True, slots=True)
class DecommissionEvent:
    """A broker was decommissioned, or (None) the decommission was withdrawn."""

    broker_id: int
    decommission: Decommission | None
    signer: str | None = None


@dataclass(frozen=True, slots=True)
class ReliefEvent:
    """A relief plan changes settings of topics, or (None) has given them back."""

    plan_id: str
    note: OrderTerms | None
    signer: str | None = None


@dataclass(frozen=True, slots=True)
class IgnoredEvent:
    """A key that is not ours."""

    key: str


@dataclass(frozen=True, slots=True)
class WrongTopicEvent:
    """An order on the usage topic, to which every agent may write: it does not count."""

    key: str


class Refusal(StrEnum):
    """Why a record's signature, or the lack of one, keeps it from counting."""

    UNSIGNED = "unsigned"
    WRONG_SIGNATURE = "wrong_signature"
    UNKNOWN_AUTHORITY = "unknown_authority"
    EXPIRED = "expired"
    REVOKED = "revoked"
    NOT_FOR_KEY = "not_for_key"
    REPLAYED = "replayed"
    AHEAD = "ahead"


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """A record that does not count; the one before it of its key goes on counting."""

    key: str
    cause: Refusal


OrderEvent = HoldEvent | BrokerOrderEvent | DecommissionEvent | ReliefEvent


Event = (
    UsageEvent | TombstoneEvent | MalformedEvent | OrderEvent | IgnoredEvent | WrongTopicEvent | RefusedEvent
)
