"""docs/scale.md, from what was measured and simulated. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.page.rows import Rows
from bench.scale.agent_cost import AgentCost
from bench.scale.client_cost import ClientCost
from bench.scale.core_cost import CoreCost
from bench.scale.fleet import DAY_STEPS, STEP_SECONDS, Course
from kquota.core.decision import State

_HEAD = """\
# Large clusters, and whole fleets over days

<!-- Written by `make scale`; SCALE_ARGS=--skip-agent leaves the agent's own tables out. Do not edit. -->

What an agent costs beside a thousand brokers, and what a fleet does in a week. The first is measured, the
second is simulated with the agent's own policy and latch.
"""
_AGENT_NOTE = """\
One agent as a process of its own, on a real topic of one broker with mutual TLS. A load generator reports
for the others as their agents would, every volume of theirs over its soft limit: each report is news, and
each volume has a vote. The agent lists one active broker, so the others count as brokers that are away.
Processor time and memory are those of the agent with its probe process; bytes are TCP's own count. That one
broker leads all partitions costs bytes: each answer to the reader repeats the heads of all of them. It
spares answers: in a real cluster each leader is asked for itself, up to ten times a second."""
_AIM_START_SECONDS, _AIM_CORES, _AIM_MEMORY_BYTES = 2.0, 0.05, 128 * 2**20
_CLIENTS_NOTE = """\
The agent's four Kafka clients in a process of their own, with nothing to do, beside librdkafka's mock of so
many brokers. librdkafka gives each broker that it has heard of a thread, which looks around once a second,
and a pipe, for each client. This comes on top of what the table above shows. The units allow for twice as
much, since a reload has the old clients and the new ones at the same time."""
_FLEET_NOTE = """\
Four brokers with three volumes of 4 TB each, limits at 20 % and 8 % free, retention of twelve hours by
segments. One step is {step} s: reports, decision and producers lag by one, more than the agents take.
Producers are held as the governor holds them: to a share of what they sent before, with a leak in PAUSE.
"Unprotected" is the same load with nobody held; a full disk there drops what comes, where a real broker
stops."""


@dataclass(frozen=True, slots=True)
class Run:
    """When and where it ran; the load averages are those of the last minute."""

    date: str
    cores: int
    load_before: float
    load_after: float
    kafka_version: str
    kquota_version: str


def page(
    core: Sequence[CoreCost],
    clients: Sequence[ClientCost],
    agents: Sequence[AgentCost],
    courses: Sequence[Course],
    run: Run,
) -> str:
    """Return the whole of docs/scale.md."""
    parts = [_HEAD, _origin(run), *(rows.markdown() for rows in tables(core, clients, agents, courses))]
    parts += [
        f"### {course.scenario.name}\n\n{course.scenario.story}\n\n"
        f"![{course.scenario.name}: fill and factor](img/scale-{course.scenario.name}.svg)\n"
        for course in courses
        if course.protected
    ]
    return "\n".join(parts)


def tables(
    core: Sequence[CoreCost],
    clients: Sequence[ClientCost],
    agents: Sequence[AgentCost],
    courses: Sequence[Course],
) -> list[Rows]:
    """Return what the terminal shows, too."""
    found = []
    if agents:
        found += [_agents(agents), _egress(agents)]
    if clients:
        found.append(_clients(clients))
    if core:
        found.append(_core(core))
    if courses:
        found.append(_fleets(courses))
    return found


def _agents(agents: Sequence[AgentCost]) -> Rows:
    return Rows(
        "An agent beside a large cluster",
        ("", *(_cluster(cost) for cost in agents), "aim"),
        (
            ("volumes", *(str(cost.brokers * cost.volumes) for cost in agents), ""),
            ("reports a second", *(f"{cost.brokers / cost.interval_seconds:.0f}" for cost in agents), ""),
            ("bytes of a report", *(str(cost.record_bytes) for cost in agents), ""),
            ("start of the process → first decision, s", *(f"{c.start_seconds:.1f}" for c in agents), "2"),
            ("of one core", *(f"{cost.cores:.1%}" for cost in agents), "5 %"),
            ("peak memory, MiB", *(f"{cost.memory_bytes / 2**20:.0f}" for cost in agents), "128"),
            ("received, kB/s", *(f"{c.received_bytes_per_second / 1e3:.0f}" for c in agents), ""),
            ("sent, kB/s", *(f"{cost.sent_bytes_per_second / 1e3:.0f}" for cost in agents), ""),
            (
                "breach handed to Kafka → PAUSE written, median s",
                *(f"{cost.pause_median_seconds:.2f}" for cost in agents),
                "",
            ),
            ("the same, longest of 15", *(f"{max(cost.pause_seconds):.2f}" for cost in agents), ""),
        ),
        f"{_AGENT_NOTE}\n\n{_against_the_aims(agents)}",
    )


def _against_the_aims(agents: Sequence[AgentCost]) -> str:
    missed = []
    for cost in agents:
        if cost.start_seconds > _AIM_START_SECONDS:
            missed.append(f"the first decision beside {_cluster(cost)} ({cost.start_seconds:.1f} s)")
        if cost.cores > _AIM_CORES:
            missed.append(f"processor time beside {_cluster(cost)} ({cost.cores:.1%})")
        if cost.memory_bytes > _AIM_MEMORY_BYTES:
            missed.append(f"memory beside {_cluster(cost)} ({cost.memory_bytes / 2**20:.0f} MiB)")
    if not missed:
        return "All aims were met in this run."
    return f"Missed in this run, with the load of the machine that is named above: {'; '.join(missed)}."


def _egress(agents: Sequence[AgentCost]) -> Rows:
    return Rows.of(
        "What the topic's leaders send",
        agents,
        (
            ("cluster", _cluster),
            ("partitions", lambda cost: str(cost.partitions)),
            ("to each agent, kB/s", lambda cost: f"{cost.received_bytes_per_second / 1e3:.0f}"),
            ("by all leaders, MB/s", lambda cost: f"{_all_leaders(cost) / 1e6:.2f}"),
            (
                "by each leader, MB/s",
                lambda cost: f"{_all_leaders(cost) / min(cost.partitions, cost.brokers) / 1e6:.2f}",
            ),
        ),
        "Computed: each broker's agent reads all that was measured above; partitions have different leaders "
        "in such a cluster. It grows with the square of the number of brokers; from 250 to 750 only in "
        "proportion, because each reports less often (ADR 0103).",
    )


def _clients(costs: Sequence[ClientCost]) -> Rows:
    return Rows.of(
        "What the agent's clients keep for each broker",
        costs,
        (
            ("brokers", lambda cost: str(cost.brokers)),
            ("threads", lambda cost: str(cost.threads)),
            ("descriptors", lambda cost: str(cost.descriptors)),
            ("memory, MiB", lambda cost: f"{cost.memory_bytes / 2**20:.0f}"),
            ("of one core", lambda cost: f"{cost.cores:.1%}"),
        ),
        _CLIENTS_NOTE,
    )


def _cluster(cost: AgentCost) -> str:
    return f"{cost.brokers} brokers, every {cost.interval_seconds:g} s"


def _all_leaders(cost: AgentCost) -> float:
    return cost.brokers * cost.received_bytes_per_second


def _core(costs: Sequence[CoreCost]) -> Rows:
    return Rows.of(
        "Reading and deciding, by themselves",
        costs,
        (
            ("cluster", lambda cost: f"{cost.brokers} x {cost.volumes} volumes"),
            ("reading a report, µs", lambda cost: f"{cost.fold_record_seconds * 1e6:.0f}"),
            ("first decision, ms", lambda cost: f"{cost.first_decision_seconds * 1e3:.1f}"),
            (
                "with a 25th of the reports new, ms",
                lambda cost: f"{cost.decision_after_reports_seconds * 1e3:.1f}",
            ),
            ("with none new, ms", lambda cost: f"{cost.next_decision_seconds * 1e3:.1f}"),
        ),
        "Processor time of one core, the least of seven runs. Every volume is over its soft limit, which "
        "costs most. Aims: 50 µs and 5 ms.",
    )


def _fleets(courses: Sequence[Course]) -> Rows:
    return Rows.of(
        "Fleets over days",
        courses,
        (
            ("scenario", lambda course: course.scenario.name + ("" if course.protected else ", unprotected")),
            ("least free", lambda course: f"{course.smallest_free_ratio:.1%}"),
            ("full after", _full_after),
            (
                "transitions, most in a day",
                lambda course: str(course.most_transitions_a_day) if course.protected else "-",
            ),
            ("in THROTTLE", lambda course: _share(course, State.THROTTLE)),
            ("in PAUSE", lambda course: _share(course, State.PAUSE)),
            ("smallest factor", lambda course: f"{min(course.factors):.2f}" if course.protected else "-"),
        ),
        _FLEET_NOTE.format(step=STEP_SECONDS),
    )


def _full_after(course: Course) -> str:
    return "never" if course.full_after_days is None else f"{course.full_after_days:.1f} days"


def _share(course: Course, state: State) -> str:
    if not course.protected:
        return "-"
    return f"{course.steps_in.get(state, 0) / DAY_STEPS:.2f} days"


def _origin(run: Run) -> str:
    return (
        f"Measured {run.date} on {run.cores} cores with Kafka {run.kafka_version} and kquota"
        f" {run.kquota_version}; load average before and after: {run.load_before:.1f} and"
        f" {run.load_after:.1f}. Other work on the machine makes processor time dearer.\n"
    )
