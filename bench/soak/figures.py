"""The soak's figures and claims. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness.claims import Claim
from bench.harness.results import Figures, of
from bench.ledger.figures import Audited
from bench.soak.growth import Growth

WANTED_CONNECTIONS, WANTED_TOPICS = 200, 40


@dataclass(frozen=True, slots=True)
class Soaked:
    """The campaign as a whole."""

    seed: int
    minutes: float
    rounds: int
    """The producers are new in each."""
    topics: int
    connections: int
    """Of clients at all brokers, at the least after a fault: a killed broker has none at first."""
    landed_bytes: int
    processor_ratio: float
    """The share of the machine's processors that was in use, by everything on it."""
    states_not_kept: tuple[str, ...]
    """Decisions that nothing gave reason for, in sentences."""
    flood_failed: int
    """Records that the producers without a book gave up."""
    usual_connections: int
    """The median after all faults."""


@dataclass(frozen=True, slots=True)
class Crossed:
    """All crossings of a limit into one state."""

    state: str
    enforced_seconds: tuple[float, ...]
    """From the crossing until all brokers enforce."""
    past_bytes: tuple[int, ...]
    """How far the volume grew from the crossing on; empty for THROTTLE, in which it may."""
    bound_bytes: tuple[float, ...]
    """How far it may, by the formula of docs/sizing.md."""


@dataclass(frozen=True, slots=True)
class Injected:
    """All faults of one kind."""

    fault: str
    by_state: dict[str, int]
    normal_seconds: tuple[float, ...]
    """From the injection until every agent has decided again, and every broker enforces the state."""


KINDS = (Soaked, Crossed, Injected, Growth, Audited)


def claims(figures: Figures) -> Iterator[Claim]:
    """The promises that no fault may break; asserted."""
    soaked = of(Soaked, figures)
    if not soaked:
        return
    (whole,) = soaked
    audited = of(Audited, figures)
    broken = [f"{one.where}: {name} {count}" for one in audited for name, count in one.broken.items()]
    records = sum(one.account.acknowledged for one in audited)
    yield _none("every promise to every producer is kept", broken, f"{records:,} acknowledged records")
    yield _none(
        "no decision without a reason", whole.states_not_kept, f"{_faults(figures)} faults, each looked at"
    )
    crossed = [
        (past, bound)
        for one in of(Crossed, figures)
        for past, bound in zip(one.past_bytes, one.bound_bytes, strict=True)
    ]
    if crossed:
        past, bound = max(crossed, key=lambda pair: pair[0] / pair[1])
        text = f"worst of {len(crossed)}: {past / 1e6:.1f} MB of {bound / 1e6:.0f} MB"
        yield Claim("no volume grows past its bound in PAUSE", past, "<=", bound, text, asserted=True)
    leaks = [f"{one.process}: {leak}" for one in of(Growth, figures) for leak in one.leaks]
    yield _none("no agent and no broker goes on growing", leaks, f"{len(of(Growth, figures))} processes")
    for what, count, wanted in (
        ("connections of producers", whole.usual_connections, WANTED_CONNECTIONS),
        ("topics", whole.topics, WANTED_TOPICS),
    ):
        yield Claim(f"{what}: at least {wanted}", count, ">=", wanted, f"{count}", asserted=True)


def _none(name: str, found: list[str] | tuple[str, ...], otherwise: str) -> Claim:
    return Claim(name, len(found), "==", 0, "; ".join(found) or otherwise, asserted=True)


def _faults(figures: Figures) -> int:
    return sum(len(one.normal_seconds) for one in of(Injected, figures))
