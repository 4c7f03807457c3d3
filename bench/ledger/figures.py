"""The ledger's figures and claims. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bench.harness.claims import Claim
from bench.harness.results import Figures, of
from bench.ledger.audit import Account, Promise
from bench.loads import Client, Delivery

PROMISES = {
    Delivery.ACKS_0: Promise.NOTHING,
    Delivery.ACKS_1: Promise.WHILE_LEADERS_LIVE,
    Delivery.ACKS_ALL: Promise.AT_LEAST_ONCE,
    Delivery.IDEMPOTENT: Promise.EXACTLY_ONCE,
    Delivery.TRANSACTIONAL: Promise.TRANSACTIONS,
}
"""Kafka's promise to producers of each kind."""


class Trouble(StrEnum):
    """Further trouble in the cluster, besides its states."""

    NONE = "no trouble"
    BROKERS_KILLED = "brokers killed"
    """A broker in THROTTLE, and the next time another one in PAUSE (SIGKILL), started again at once."""
    FAULTS_BY_LOT = "faults by lot"
    """Those of `make soak`, of which a broker's death is one."""
    NETWORK = "producers on bad networks"
    PARTITION = "controllers killed, a broker cut off"
    DISK = "disks that hang and fail"
    AGENTS = "agents stopped and killed"

    @property
    def deposes_leaders(self) -> bool:
        """Whether a leader ends, loses its disk, or is replaced while it still takes itself for one."""
        return self not in {Trouble.NONE, Trouble.NETWORK, Trouble.AGENTS}


@dataclass(frozen=True, slots=True)
class Audited:
    """One producer of one run."""

    client: Client
    delivery: Delivery
    fence: bool
    scope: str
    trouble: Trouble
    patience_seconds: float | None
    """How long the client tries to deliver a record (delivery.timeout.ms); None: the client's default."""
    account: Account
    errors: Mapping[str, int]
    """Of records and transactions, as the client named them."""

    @property
    def promise(self) -> Promise:
        """Kafka's promise to this producer."""
        return PROMISES[self.delivery]

    @property
    def broken(self) -> Mapping[str, int]:
        """The counts that must be 0 and are not."""
        return self.account.broken(self.promise, leaders_died=self.trouble.deposes_leaders)

    @property
    def run(self) -> str:
        """The run, for people."""
        parts = [f"held by the {'fence' if self.fence else 'governor'}", f"scope {self.scope}"]
        parts += [self.trouble] if self.trouble is not Trouble.NONE else []
        parts += [f"patience {self.patience_seconds:g} s"] if self.patience_seconds is not None else []
        return ", ".join(parts)

    @property
    def where(self) -> str:
        """The producer and the run, for people."""
        return f"{self.client}, {self.delivery}, {self.run}"


KINDS = (Audited,)


def claims(figures: Figures) -> Iterator[Claim]:
    """No promise is broken, and each producer has something to account for; asserted."""
    audited = of(Audited, figures)
    if not audited:
        return
    for promise in Promise:
        kept = [one for one in audited if one.promise is promise]
        if not kept:
            continue
        records = sum(one.account.acknowledged for one in kept)
        broken = [one for one in kept if one.broken]
        said = "; ".join(
            f"{one.where}: " + ", ".join(f"{count} {name}" for name, count in one.broken.items())
            for one in broken
        )
        yield Claim(
            f"promise “{promise}”: kept for all {len(kept)} producers",
            len(broken),
            "==",
            0,
            said or f"{records:,} acknowledged records",
            asserted=True,
        )
    fewest = min(audited, key=lambda one: one.account.acknowledged)
    yield Claim(
        "each producer has records acknowledged before the first PAUSE and after the last",
        fewest.account.acknowledged,
        ">=",
        100,
        f"at least {fewest.account.acknowledged:,} ({fewest.where})",
        asserted=True,
    )
