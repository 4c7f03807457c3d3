"""The measurements of large clusters, and the results of fleets: values, claims, tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.harness.claims import Claim, each
from bench.harness.page import Table
from bench.harness.results import Figures, of

HEAD = """\
# Large clusters, and whole fleets over days

What an agent costs beside a thousand brokers, and what a fleet does in a week. The first is measured, the
second is simulated with the agent's own policy and latch. Other work on the machine makes processor time
dearer.
"""
_AGENT_NOTE = """\
One agent as a process of its own, on a real topic of one broker with mutual TLS. A load generator reports
for the others as their agents would, every volume of theirs over its soft limit: each report is news, and
each volume has a vote. The agent lists one active broker, so the others count as brokers that are away.
Processor time and memory are those of the agent with its probe process; bytes are TCP's own count. That one
broker leads all partitions costs bytes: each answer to the reader repeats the heads of all of them. It
spares answers: in a real cluster each leader is asked for itself, up to ten times a second."""
_CLIENTS_NOTE = """\
The agent's four Kafka clients in a process of their own, with nothing to do, beside librdkafka's mock of so
many brokers. librdkafka gives each broker that it has heard of a thread, which looks around once a second,
and a pipe, for each client. This comes on top of what the table above shows. The units allow for twice as
much, since a reload has the old clients and the new ones at the same time."""
_FLEET_NOTE = """\
Four brokers with three volumes of 4 TB each, limits at 20 % and 8 % free, retention of twelve hours by
segments. One step is 20 s: reports, decision and producers lag by one, more than the agents take.
Producers are held as the governor holds them: to a share of what they sent before, with a leak in PAUSE.
"Unprotected" is the same load with nobody held; a full disk there drops what comes, where a real broker
stops."""
_CAUSE = "the load of the machine, which is named above"


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

    def __str__(self) -> str:
        """The cluster, for people."""
        return f"{self.brokers} brokers, every {self.interval_seconds:g} s"

    @property
    def by_all_leaders(self) -> float:
        """Bytes per second that the topic's leaders send to all agents of such a cluster."""
        return self.brokers * self.received_bytes_per_second


@dataclass(frozen=True, slots=True)
class ClientCost:
    """Of a process with the agent's clients, and nothing to do; ``cores`` is its share of one."""

    brokers: int
    threads: int
    descriptors: int
    memory_bytes: int
    cores: float


@dataclass(frozen=True, slots=True)
class CoreCost:
    """Seconds of one processor core; the least of some repeats, because noise only adds."""

    brokers: int
    volumes: int
    fold_record_seconds: float
    first_decision_seconds: float
    next_decision_seconds: float
    decision_after_reports_seconds: float

    def __str__(self) -> str:
        """The cluster, for people."""
        return f"{self.brokers} x {self.volumes} volumes"


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


KINDS = (AgentCost, ClientCost, CoreCost, Fleet)


def claims(figures: Figures) -> Iterator[Claim]:
    """The aims, and that no disk of a protected fleet fills."""
    protected = [fleet for fleet in of(Fleet, figures) if fleet.protected]
    if protected:
        least = min(protected, key=lambda fleet: fleet.smallest_free_ratio)
        full = sum(fleet.full_after_days is not None for fleet in protected)
        told = f"{full} of {len(protected)}; least free {least.smallest_free_ratio:.1%} ({least.scenario})"
        yield Claim("no disk of a protected fleet fills", full, "==", 0, told, asserted=True)
    agents: tuple[tuple[str, Callable[[AgentCost], float], float, str], ...] = (
        ("decides within 2 s of its start", lambda cost: cost.start_seconds, 2, "s"),
        ("uses at most 5 % of a core", lambda cost: 100 * cost.cores, 5, "%"),
        ("takes at most 128 MiB of memory", lambda cost: cost.memory_bytes / 2**20, 128, "MiB"),
    )
    for name, agent_figure, bound, unit in agents:
        yield from each(
            f"an agent beside a large cluster {name}",
            of(AgentCost, figures),
            agent_figure,
            bound,
            unit,
            str,
            _CAUSE,
        )
    core: tuple[tuple[str, Callable[[CoreCost], float], float, str], ...] = (
        ("reading a report takes at most 50 µs", lambda cost: 1e6 * cost.fold_record_seconds, 50, "µs"),
        (
            "a decision with a 25th of the reports new takes at most 5 ms",
            lambda cost: 1e3 * cost.decision_after_reports_seconds,
            5,
            "ms",
        ),
    )
    for name, core_figure, bound, unit in core:
        yield from each(name, of(CoreCost, figures), core_figure, bound, unit, str, _CAUSE)


def tables(figures: Figures) -> Iterator[Table]:
    """All of them; one of which nothing was measured has no rows."""
    agents = of(AgentCost, figures)
    yield Table.of(
        "An agent beside a large cluster",
        agents,
        (
            ("", str),
            ("volumes", lambda cost: str(cost.brokers * cost.volumes)),
            ("reports a second", lambda cost: f"{cost.brokers / cost.interval_seconds:.0f}"),
            ("bytes of a report", lambda cost: str(cost.record_bytes)),
            ("start of the process → first decision, s", lambda cost: f"{cost.start_seconds:.1f}"),
            ("of one core", lambda cost: f"{cost.cores:.1%}"),
            ("peak memory, MiB", lambda cost: f"{cost.memory_bytes / 2**20:.0f}"),
            ("received, kB/s", lambda cost: f"{cost.received_bytes_per_second / 1e3:.0f}"),
            ("sent, kB/s", lambda cost: f"{cost.sent_bytes_per_second / 1e3:.0f}"),
            ("breach handed to Kafka → PAUSE written, median s", lambda c: f"{c.pause_median_seconds:.2f}"),
            ("the same, longest of 15", lambda cost: f"{cost.pause_longest_seconds:.2f}"),
        ),
        _AGENT_NOTE,
    ).turned()
    yield Table.of(
        "What the topic's leaders send",
        agents,
        (
            ("cluster", str),
            ("partitions", lambda cost: str(cost.partitions)),
            ("to each agent, kB/s", lambda cost: f"{cost.received_bytes_per_second / 1e3:.0f}"),
            ("by all leaders, MB/s", lambda cost: f"{cost.by_all_leaders / 1e6:.2f}"),
            (
                "by each leader, MB/s",
                lambda cost: f"{cost.by_all_leaders / min(cost.partitions, cost.brokers) / 1e6:.2f}",
            ),
        ),
        "Computed: each broker's agent reads all that was measured above; partitions have different leaders "
        "in such a cluster. It grows with the square of the number of brokers; from 250 to 750 only in "
        "proportion, because each reports less often (ADR 0103).",
    )
    yield Table.of(
        "What the agent's clients keep for each broker",
        of(ClientCost, figures),
        (
            ("brokers", lambda cost: str(cost.brokers)),
            ("threads", lambda cost: str(cost.threads)),
            ("descriptors", lambda cost: str(cost.descriptors)),
            ("memory, MiB", lambda cost: f"{cost.memory_bytes / 2**20:.0f}"),
            ("of one core", lambda cost: f"{cost.cores:.1%}"),
        ),
        _CLIENTS_NOTE,
    )
    yield Table.of(
        "Reading and deciding, by themselves",
        of(CoreCost, figures),
        (
            ("cluster", str),
            ("reading a report, µs", lambda cost: f"{cost.fold_record_seconds * 1e6:.0f}"),
            ("first decision, ms", lambda cost: f"{cost.first_decision_seconds * 1e3:.1f}"),
            ("with a 25th of the reports new, ms", lambda c: f"{c.decision_after_reports_seconds * 1e3:.1f}"),
            ("with none new, ms", lambda cost: f"{cost.next_decision_seconds * 1e3:.1f}"),
        ),
        "Processor time of one core, the least of seven runs. Every volume is over its soft limit, which "
        "costs most.",
    )
    yield _fleets(of(Fleet, figures))


def _fleets(fleets: list[Fleet]) -> Table:
    def held(figure: Callable[[Fleet], str]) -> Callable[[Fleet], str]:
        return lambda fleet: figure(fleet) if fleet.protected else "-"

    return Table.of(
        "Fleets over days",
        fleets,
        (
            ("scenario", lambda fleet: fleet.scenario + ("" if fleet.protected else ", unprotected")),
            ("least free", lambda fleet: f"{fleet.smallest_free_ratio:.1%}"),
            (
                "full after",
                lambda f: "never" if f.full_after_days is None else f"{f.full_after_days:.1f} days",
            ),
            ("transitions, most in a day", held(lambda fleet: str(fleet.most_transitions_a_day))),
            ("in THROTTLE", held(lambda fleet: f"{fleet.throttle_days:.2f} days")),
            ("in PAUSE", held(lambda fleet: f"{fleet.pause_days:.2f} days")),
            ("smallest factor", held(lambda fleet: f"{fleet.smallest_factor:.2f}")),
        ),
        _FLEET_NOTE,
        "\n\n".join(
            f"### {fleet.scenario}\n\n{fleet.story}\n\n"
            f"![{fleet.scenario}: fill and factor](img/scale-{fleet.scenario}.svg)"
            for fleet in fleets
            if fleet.protected
        ),
    )
