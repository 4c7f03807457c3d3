"""The measurements, as tables. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Protocol

from bench.bounds import overshoot_bound_bytes
from bench.claims import HELD_RATIO
from bench.figures import (
    AgentCost,
    Case,
    Latency,
    Overshoot,
    Paused,
    Poll,
    QuotaThread,
    Reaction,
    RequestCost,
    Throttled,
    Throughput,
    megabytes,
)
from bench.harness.page import Table
from bench.harness.results import Figures, of

HEAD = """\
# How producers are held, measured

In THROTTLE and PAUSE there is one Kafka broker for each system, and all systems of a case run at the same
time with the same producers, so that the machine's noise is the same for all; in a PAUSE at more than 5
MB/s, or of 100 connections, one after the other. Nothing absolute is promised: claims are
ratios within one run, compare within a case. What
has landed is read from the log end offsets ten times a second, one topic for each connection. Producers
offer 5 MB/s together, in records of 10 kB, and are as their client has it by default (Java: idempotent;
librdkafka: acks=all) where nothing else is said. Each connection has a client id of its own, and appears 6
to 20 s before it is held.

| system | what holds producers |
|---|---|
| stock | nothing |
| governor | kquota's quota callback, stock window W = 11 x 1 s |
| governor W=3 | the same with `quota.window.num=3` |
| fence, fence W=3 | the callback, and kquota's authorizer for PAUSE; its THROTTLE is the governor's |
| peer | the Strimzi quotas plug-in; its disk is filled, which it looks at every 2 s; no THROTTLE |
"""


class _OfACase(Protocol):
    @property
    def case(self) -> Case: ...


_WHOSE: tuple[tuple[str, Callable[[_OfACase], str]], ...] = (
    ("system", lambda entry: entry.case.system),
    ("client", lambda entry: entry.case.whose),
    ("conn.", lambda entry: str(entry.case.connections)),
)


def tables(figures: Figures) -> Iterator[Table]:
    """All of them; one of which nothing was measured has no rows."""
    yield Table.of(
        "Reaction: from the breach until every broker enforces",
        of(Reaction, figures),
        (
            ("system", lambda entry: entry.system),
            ("brokers", lambda entry: str(entry.brokers)),
            ("breaches", lambda entry: str(len(entry.pause_seconds))),
            ("median s", lambda entry: f"{median(entry.pause_seconds):.2f}"),
            ("worst s", lambda entry: f"{max(entry.pause_seconds):.2f}"),
            ("release median s", lambda entry: f"{median(entry.release_seconds):.2f}"),
            ("worst s", lambda entry: f"{max(entry.release_seconds):.2f}"),
        ),
        "A file is grown on one broker's volume beyond its hard limit, and removed again. kquota: agents at "
        "default settings, until the last broker's plug-in says that it enforces PAUSE. Peer: until the last "
        "broker logs its new factor, with a look at the disks every 2 s, its quickest setting that works.",
    )
    yield Table.of(
        "Overshoot: a volume filled flat out by replication",
        of(Overshoot, figures),
        (
            ("held by", lambda seen: "fence" if seen.fence else f"governor W={seen.window_seconds:g}"),
            ("zone", lambda seen: megabytes(seen.zone_bytes)),
            ("fills at", lambda seen: f"{seen.fill_rate / 1e6:.0f} MB/s"),
            ("reaction s", lambda seen: f"{seen.reaction_seconds:.2f}"),
            ("past hard", lambda seen: megabytes(seen.past_hard_bytes) if seen.reached else "not reached"),
            ("bound", lambda seen: megabytes(overshoot_bound_bytes(seen))),
        ),
        "The third of three brokers leads nothing and follows everything. Zone: from the soft to the hard "
        "limit. Fills at: the fastest second before the pause. Past hard: the farthest in 12 s of PAUSE; "
        "`not reached`: not within 45 s of the soft limit. "
        "Bound: r·(τ + W/2) + one request per connection + the leak with which docs/sizing.md sizes limits.",
    )
    yield Table.of(
        "THROTTLE: steps and ramps of the factor",
        of(Throttled, figures),
        (
            *_WHOSE,
            ("step", lambda step: step.step),
            ("MB/s before", lambda step: f"{step.baseline_rate / 1e6:.1f}"),
            (
                "settled s",
                lambda step: "-" if step.settled_seconds is None else f"{step.settled_seconds:.1f}",
            ),
            ("silence s", lambda step: f"{step.longest_silence_seconds:.1f}"),
            ("÷ target", lambda step: _or_dash(step.mean_ratio, 2)),
        ),
        "Settled: the time until the mean of five seconds is within 20 % of the target, `-` where that did "
        "not happen within 16 s, and for ramps. Silence: the longest of any connection, with a resolution of "
        "0.1 s. ÷ target: the mean of the last 11 s of a step, and of the whole of a ramp.",
    )
    yield from _pauses(of(Paused, figures))
    yield from _open(of(Throughput, figures), of(Latency, figures))
    yield from _costs(figures)


def _pauses(pauses: Sequence[Paused]) -> Iterator[Table]:
    yield Table.of(
        "PAUSE: what lands, and when clients are back",
        pauses,
        (
            *_WHOSE,
            ("pause", lambda pause: f"{pause.seconds:g} s"),
            ("MB/s before", lambda pause: f"{pause.rate_before / 1e6:.1f}"),
            ("landed", lambda pause: megabytes(pause.landed_bytes) + _mark(pause)),
            ("after 0.5 s", lambda pause: megabytes(pause.landed_late_bytes)),
            ("first back", lambda pause: _back(pause.first_resumed_seconds, pause)),
            ("last back", lambda pause: _back(pause.slowest_resumed_seconds, pause)),
            ("errors", lambda pause: f"{pause.failed_records} {', '.join(pause.errors)}".strip()),
        ),
        "Landed counts from the order to pause. `!`: more than half of what would have landed anyway, so "
        "nobody was held. `?`: nothing flowed before. Back: a connection lands at half its rate again, "
        "counted from the order to go on; `>` where one did not in the time watched. For the peer both "
        "orders include its look at the disk, up to 2 s. Errors: records that a producer gave up. A "
        "transaction's marker counts as a record.",
    )
    yield Table.of(
        "PAUSE: when it lands, and for whom",
        pauses,
        (
            *_WHOSE,
            ("pause", lambda pause: f"{pause.seconds:g} s"),
            ("MB in each fifth", lambda pause: _listed(pause.landed_by_fifth_bytes, 1e6, 1)),
            ("MB by connection: least", lambda pause: f"{min(pause.landed_by_connection_bytes) / 1e6:.2f}"),
            ("median", lambda pause: f"{median(pause.landed_by_connection_bytes) / 1e6:.2f}"),
            ("most", lambda pause: f"{max(pause.landed_by_connection_bytes) / 1e6:.2f}"),
        ),
    )


def _mark(pause: Paused) -> str:
    if pause.offered_ratio is None:
        return " ?"
    return " !" if pause.offered_ratio > HELD_RATIO else ""


def _back(value: float | None, pause: Paused) -> str:
    return f"> {pause.watched_seconds:g} s" if value is None else f"{value:.1f} s"


def _or_dash(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _listed(values: Sequence[float], unit: float, digits: int) -> str:
    return " ".join(f"{value / unit:.{digits}f}" for value in values)


def _open(rates: Sequence[Throughput], times: Sequence[Latency]) -> Iterator[Table]:
    yield Table.of(
        "OPEN: throughput, flat out",
        rates,
        (
            *_WHOSE,
            ("MB/s by round", lambda entry: _listed(entry.rates, 1e6, 0)),
            ("median", lambda entry: f"{median(entry.rates) / 1e6:.0f}"),
            ("CPU s/GB", lambda entry: f"{median(entry.processor_seconds_per_gigabyte):.2f}"),
        ),
        "One system at a time, in alternating rounds of 3 s; a system's round is compared with the stock "
        "broker's of the same turn. CPU: of the broker's process, which noise of the machine touches less.",
    )
    yield Table.of(
        "OPEN: latency at 1 MB/s",
        times,
        (
            *_WHOSE,
            ("median ms by round", lambda entry: _listed(entry.median_milliseconds, 1, 1)),
            ("median", lambda entry: f"{median(entry.median_milliseconds):.1f}"),
            ("99 % ms by round", lambda entry: _listed(entry.p99_milliseconds, 1, 0)),
            ("median", lambda entry: f"{median(entry.p99_milliseconds):.0f}"),
        ),
        "From send to acknowledgement of each record, in alternating rounds of 4 s.",
    )


def _costs(figures: Figures) -> Iterator[Table]:
    yield _requests(
        "Request path: metering one produce request, ns",
        [entry for entry in of(RequestCost, figures) if entry.path == "request path"],
        "JMH: the processor time of one thread in the broker's own quota code "
        "(`maybeRecordAndGetThrottleTimeMs`), the median of the iterations and half of how far they lie "
        "apart; clients in turn, each with a user and a client id of its own. Stock meters nobody where no "
        "quota is set; a callback always meters. Without quotas the plug-in keeps 2,000 tag sets apart; the "
        "other clients share one.",
    )
    threads = of(QuotaThread, figures)
    used = ", ".join(f"{thread.name} {thread.milliseconds_per_second:.1f} ms" for thread in threads)
    yield _requests(
        "Request path with very many quotas, ns",
        [entry for entry in of(RequestCost, figures) if entry.path == "many quotas"],
        "As above, with 10,000 clients, 100 groups (half of them with a total of the cluster) that have "
        "three of four clients, 100 overrides, and 1,000 topics of eight partitions, each with an ACL, 100 "
        "of them with a threshold. Stock has the authorizer with its ACLs, and a quota that each client has "
        f"for itself. The plug-in's own threads use, per second: {used}.",
    )
    yield Table.of(
        "A look of the governor",
        of(Poll, figures),
        (
            ("state", lambda poll: poll.state),
            ("tag sets", lambda poll: f"{poll.clients:,}"),
            ("ms", lambda poll: f"{poll.milliseconds:.2f}"),
        ),
        "Processor time of the plug-in's own thread, which looks ten times a second, in a JVM with the "
        "broker's quota code and every client in use.",
    )
    yield Table.of(
        "Agents in OPEN",
        of(AgentCost, figures),
        (
            ("broker", lambda agent: str(agent.broker_id)),
            ("% of a core", lambda agent: f"{agent.processor_ratio:.1%}"),
            ("MiB", lambda agent: f"{agent.memory_bytes / 2**20:.0f}"),
        ),
        "Each with its probe process, at default settings, over 20 s. Pages that the two share count once.",
    )


def _requests(title: str, entries: Sequence[RequestCost], note: str) -> Table:
    parts = list(dict.fromkeys(entry.what for entry in entries))
    costs = {(e.who, e.what): f"{e.nanoseconds:.0f} ± {e.spread_nanoseconds:.0f}" for e in entries}
    return Table.of(
        title,
        dict.fromkeys(entry.who for entry in entries),
        (("who", str), *((part, lambda who, part=part: costs.get((who, part), "-")) for part in parts)),
        note,
    )
