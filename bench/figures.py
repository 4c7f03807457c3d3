"""The measurements of the bench, as values. Rates are in bytes per second."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from bench.loads import Client, Delivery

USUAL_RATE_BYTES = 5e6
"""Offered where nothing else is said: several systems at a time leave a small machine time to spare."""
FLAT_OUT = 0.0
"""Offered is as much as the broker takes."""


@dataclass(frozen=True, slots=True)
class Case:
    """The producers, and the system that they produce to."""

    system: str
    client: Client
    connections: int
    delivery: Delivery = Delivery.USUAL
    offered_rate: float = USUAL_RATE_BYTES
    """By all connections together."""

    @property
    def whose(self) -> str:
        """The producers, for people."""
        words = [self.client.value]
        if self.delivery is not Delivery.USUAL:
            words.append(self.delivery.value)
        if self.offered_rate == FLAT_OUT:
            words.append("flat out")
        elif self.offered_rate != USUAL_RATE_BYTES:
            words.append(f"at {self.offered_rate / 1e6:g} MB/s")
        return " ".join(words)

    def __str__(self) -> str:
        """For people."""
        return f"{self.system}, {self.whose} x {self.connections}"


@dataclass(frozen=True, slots=True)
class Throttled:
    """One change of the throttle factor, a step or a ramp; `settled_seconds` None: it did not happen."""

    case: Case
    factor_from: float
    factor: float
    baseline_rate: float
    settled_seconds: float | None
    longest_silence_seconds: float
    mean_ratio: float | None
    """A step: mean of the last window of 11 s ÷ target. A ramp: what landed ÷ what the factors add up to.

    None where nothing flowed before.
    """
    ramp_seconds: float = 0.0
    """0: a step."""
    fairness: float | None = None
    """A step: Jain's index of what the connections landed in the same time, 1 where all landed the same."""
    measured_seconds: float = 16.0
    """A step: how long it was watched."""

    @property
    def round_seconds(self) -> float:
        """How long one largest request of each connection takes at the target."""
        target = self.factor * self.baseline_rate
        return self.case.connections * self.case.client.largest_request_bytes / target if target > 0 else inf

    @property
    def step(self) -> str:
        """For people."""
        over = f" in {self.ramp_seconds:g} s" if self.ramp_seconds else ""
        return f"{self.factor_from:g}→{self.factor:g}{over}"

    def __str__(self) -> str:
        """The case and its treatment."""
        return f"{self.case}, {self.step}"


@dataclass(frozen=True, slots=True)
class Paused:
    """One pause. A resume that did not happen within `watched_seconds` is None."""

    case: Case
    seconds: float
    rate_before: float
    landed_bytes: int
    """From the order to pause to the order to go on."""
    landed_late_bytes: int
    """Of these, what landed after the first half second."""
    landed_by_connection_bytes: tuple[int, ...]
    landed_by_fifth_bytes: tuple[int, ...]
    """The same in five equal parts of the pause."""
    resumed_seconds: tuple[float | None, ...]
    """By connection."""
    watched_seconds: float
    failed_records: int
    errors: tuple[str, ...]

    def __str__(self) -> str:
        """The case and its treatment."""
        return f"{self.case}, {self.seconds:g} s"

    @property
    def offered_ratio(self) -> float | None:
        """Landed bytes ÷ those without a pause; None without a flow at its beginning."""
        return None if self.rate_before <= 0 else self.landed_bytes / (self.rate_before * self.seconds)

    @property
    def first_resumed_seconds(self) -> float | None:
        """The first client's."""
        return min((value for value in self.resumed_seconds if value is not None), default=None)

    @property
    def slowest_resumed_seconds(self) -> float | None:
        """The slowest client's; None where one did not come back while it was watched."""
        known = [value for value in self.resumed_seconds if value is not None]
        return max(known) if known and len(known) == len(self.resumed_seconds) else None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Flat out in OPEN, in rounds that alternate with the stock broker's."""

    case: Case
    rates: tuple[float, ...]
    processor_seconds_per_gigabyte: tuple[float, ...]
    """Of the broker's process."""


@dataclass(frozen=True, slots=True)
class Impatient:
    """Clients that try again at once, each connection with one small request under way."""

    system: str
    state: str
    connections: int
    answers_per_second: float
    refused_ratio: float
    """Of the answers."""
    processor_ratio: float
    """Of one core: the broker's process."""

    @property
    def processor_microseconds(self) -> float:
        """Of the broker's process for each answer."""
        return 1e6 * self.processor_ratio / self.answers_per_second


@dataclass(frozen=True, slots=True)
class Latency:
    """From send to acknowledgement in OPEN at a small rate, in rounds that alternate with stock."""

    case: Case
    median_milliseconds: tuple[float, ...]
    p99_milliseconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Reaction:
    """From the byte that breaches on one broker until all enforce it; and from the space being free."""

    system: str
    brokers: int
    pause_seconds: tuple[float, ...]
    release_seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Scoped:
    """One volume that fills on six brokers, and the producers to topics on it and to others."""

    system: str
    client: Client
    mixed: bool
    """Whether each producer writes to a topic at stake and to another one."""
    state: str
    factor: float
    """That of topics at stake, by the decision."""
    enforced_seconds: float
    """From the breach until all brokers enforce."""
    held_seconds: float
    others_before: float
    others_held: float
    """From the breach on."""
    stake_before: float
    stake_held: float
    """From the fifth second after the breach on."""
    stake_late_bytes: int
    """After the first half second."""
    failed_records: int

    @property
    def others_ratio(self) -> float:
        """The share of their rate that producers to other topics keep."""
        return self.others_held / self.others_before

    @property
    def stake_ratio(self) -> float:
        """The same of those to topics at stake."""
        return self.stake_held / self.stake_before

    @property
    def whose(self) -> str:
        """The producers, for people."""
        return f"{self.client.value}, {'each to both kinds' if self.mixed else 'each to one topic'}"

    def __str__(self) -> str:
        """The case and its treatment."""
        return f"{self.system}, {self.whose}, {self.state}"


@dataclass(frozen=True, slots=True)
class AgentCost:
    """One agent, its probe process included, in OPEN at default settings."""

    broker_id: int
    watched_seconds: float
    processor_ratio: float
    """Of one core."""
    memory_bytes: int
    """In memory: of the agent, and of its probe process what that doesn't share with it."""


@dataclass(frozen=True, slots=True)
class SegmentsCost:
    """One look at the segments of a broker, with the default budget."""

    segments: int
    files: int
    seconds: float
    processor_ratio: float
    """Of one core: the process that looks."""
    owner_processor_ratio: float
    """Likewise: reading its answer, and playing Kafka's deletion."""
    memory_bytes: int
    """Of the process that looks, at most."""


@dataclass(frozen=True, slots=True)
class RequestCost:
    """The cost of one produce request in the broker's quota code, in processor time."""

    path: str
    """`request path`: metering alone, by the number of clients. `many quotas`: see the page."""
    who: str
    """The metering callback: stock, or the plug-in."""
    what: str
    nanoseconds: float
    """The median of all iterations."""
    spread_nanoseconds: float
    """Half the way from the cheapest iteration to the dearest."""


@dataclass(frozen=True, slots=True)
class QuotaThread:
    """Processor time of one of the plug-in's own threads with them."""

    name: str
    milliseconds_per_second: float


@dataclass(frozen=True, slots=True)
class Poll:
    """Processor time of one look of the governor, ten a second."""

    state: str
    clients: int
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Overshoot:
    """A volume that is filled flat out by replication alone, through its soft and hard limit."""

    zone_bytes: int
    """From the soft to the hard limit."""
    window_seconds: float
    fence: bool
    reached: bool
    """Whether the hard limit was reached within 45 s of the soft one; if not, there was no pause."""
    fill_rate: float
    """Of that volume at full speed: the fastest second before the pause."""
    reaction_seconds: float
    past_hard_bytes: int
    """The farthest it went; negative where it did not get to the hard limit."""
    pause_seconds: float
    connections: int
    """Of producers, at all brokers."""
    request_bytes: int
    """The largest."""
    leaders: int
    """Brokers whose producers fill this volume."""
    share: float
    """Of what they append, what lands on this volume."""
    mute_max_seconds: float
    arrival_min_bytes: int
    curve: tuple[tuple[float, int], ...]
    """Seconds from the breach (from the end, where there was none), and bytes past the hard limit."""


def megabytes(count: float) -> str:
    """For people: 10^6 bytes, never 0 for a positive figure."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 or count == 0 else f"{count / 1e3:.0f} kB"


KINDS = (
    Throttled, Paused, Scoped, Throughput, Impatient, Latency, Reaction, AgentCost, SegmentsCost, RequestCost,
    Poll, QuotaThread, Overshoot,
)  # fmt: skip
