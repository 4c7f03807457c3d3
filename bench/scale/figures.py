"""The measurements of large clusters, and the results of fleets: values and claims. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.harness.claims import Claim, each
from bench.harness.results import Figures, of
from bench.scale.plays import PlayCost, play_claims

_CAUSE = "other work on the machine; its load is named above"
_READ_FIRST = "all reports are read, and verified if they are signed, before the first decision"
_EACH_REPORT = (
    "each agent reads every report: 67 a second wake librdkafka, the reader and, batch by batch, the cycle "
    "(ADR 0011)"
)
_THREADS = (
    "each client has a thread for each broker, which wakes up once a second, and the client that "
    "asks is built again every twenty seconds (ADR 0011)"
)


@dataclass(frozen=True, slots=True)
class AgentCost:
    """Figures of the agent and its probe process together; bytes as TCP counted them, TLS included."""

    brokers: int
    volumes: int
    partitions: int
    interval_seconds: float
    record_bytes: int
    start_seconds: float
    cores: float
    memory_bytes: int
    received_bytes_per_second: float
    sent_bytes_per_second: float
    pause_median_seconds: float
    """From a breach handed to Kafka to a decision file that says PAUSE."""
    pause_longest_seconds: float
    scoped: bool = False
    decision_bytes: int | None = None
    signature_bytes: int | None = None
    """The largest headers of a report; None where reports are not signed."""

    def __str__(self) -> str:
        """The cluster, for people."""
        named = ", 40 name 200 topics each" if self.scoped else ""
        signed = ", signed" if self.signature_bytes is not None else ""
        return f"{self.brokers} brokers, every {self.interval_seconds:g} s{named}{signed}"

    @property
    def by_all_leaders(self) -> float:
        """Bytes per second that the topic's leaders send to all agents of such a cluster."""
        return self.brokers * self.received_bytes_per_second


@dataclass(frozen=True, slots=True)
class ClientCost:
    """Of a process with the agent's clients, and nothing to do; ``cores`` is its share of one.

    Memory is what the clients add. Threads and memory are the median; ``most_…`` are those while the Admin
    client of a large cluster asks.
    """

    brokers: int
    threads: int
    descriptors: int
    memory_bytes: int
    cores: float
    most_threads: int
    most_memory_bytes: int


@dataclass(frozen=True, slots=True)
class SignatureCost:
    """Seconds of one processor core for one record; the least of some repeats."""

    value_bytes: int
    header_bytes: int
    sign_seconds: float
    verify_seconds: float
    """With the certificate known."""
    first_verify_seconds: float
    """With its certificate."""


@dataclass(frozen=True, slots=True)
class CoreCost:
    """Seconds of one processor core; the least of some repeats, because noise only adds."""

    brokers: int
    volumes: int
    fold_record_seconds: float
    first_decision_seconds: float
    next_decision_seconds: float
    decision_after_reports_seconds: float
    scoped: bool = False
    decision_bytes: int | None = None

    def __str__(self) -> str:
        """The cluster, for people."""
        return f"{self.brokers} x {self.volumes} volumes{', 40 name 200 topics each' if self.scoped else ''}"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The result of a simulated fleet; without protection no producer is held."""

    scenario: str
    story: str
    protected: bool
    smallest_free_ratio: float
    full_after_days: float | None
    most_transitions_a_day: int
    throttle_days: float
    pause_days: float
    smallest_factor: float


KINDS = (AgentCost, ClientCost, CoreCost, SignatureCost, PlayCost, Fleet)


def claims(figures: Figures) -> Iterator[Claim]:
    """The aims, and that no disk of a protected fleet fills."""
    protected = [fleet for fleet in of(Fleet, figures) if fleet.protected]
    if protected:
        least = min(protected, key=lambda fleet: fleet.smallest_free_ratio)
        full = sum(fleet.full_after_days is not None for fleet in protected)
        shown = f"{full} of {len(protected)}; least free {least.smallest_free_ratio:.1%} ({least.scenario})"
        yield Claim("no disk of a protected fleet fills", full, "==", 0, shown, asserted=True)
    agents: tuple[tuple[str, Callable[[AgentCost], float], float, str, str], ...] = (
        ("decides within 2 s of its start", lambda cost: cost.start_seconds, 2, "s", _READ_FIRST),
        ("uses at most 5 % of a core", lambda cost: 100 * cost.cores, 5, "%", _EACH_REPORT),
        ("takes at most 128 MiB of memory", lambda cost: cost.memory_bytes / 2**20, 128, "MiB", _CAUSE),
    )
    for name, agent_figure, bound, unit, cause in agents:
        yield from each(
            f"an agent in a large cluster {name}",
            of(AgentCost, figures),
            agent_figure,
            bound,
            unit,
            str,
            cause,
        )
    yield from each(
        "the first decision with signed reports comes within 2.5 s of the start",
        [cost for cost in of(AgentCost, figures) if cost.signature_bytes is not None],
        lambda cost: cost.start_seconds, 2.5, "s", str, _READ_FIRST,
    )  # fmt: skip
    clients: tuple[tuple[str, Callable[[ClientCost], float], float, str], ...] = (
        ("have at most 2,100 threads", lambda cost: cost.threads, 2100, "threads"),
        ("take at most 128 MiB of memory", lambda cost: cost.memory_bytes / 2**20, 128, "MiB"),
        ("use at most 4 % of a core", lambda cost: 100 * cost.cores, 4, "%"),
    )
    for name, client_figure, bound, unit in clients:
        yield from each(
            f"an agent's Kafka clients with nothing to do {name}",
            of(ClientCost, figures), client_figure, bound, unit,
            lambda cost: f"{cost.brokers} brokers", _THREADS,
        )  # fmt: skip
    for name, signature_figure, bound, unit in (
        ("the headers of a signature take at most 700 bytes", lambda cost: cost.header_bytes, 700, "bytes"),
        (
            "to verify a report takes at most 120 µs",
            lambda cost: 1e6 * cost.verify_seconds,
            120,
            "µs",
        ),
    ):
        yield from each(
            name, of(SignatureCost, figures), signature_figure, bound, unit,
            lambda cost: f"a report of {cost.value_bytes} bytes", _CAUSE,
        )  # fmt: skip
    core: tuple[tuple[str, Callable[[CoreCost], float], float, str], ...] = (
        ("to read a report takes at most 50 µs", lambda cost: 1e6 * cost.fold_record_seconds, 50, "µs"),
        (
            "a decision with a 25th of the reports new takes at most 5 ms",
            lambda cost: 1e3 * cost.decision_after_reports_seconds,
            5,
            "ms",
        ),
    )
    for name, core_figure, bound, unit in core:
        yield from each(name, of(CoreCost, figures), core_figure, bound, unit, str, _CAUSE)
    yield from play_claims(figures)
