"""What was measured, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Protocol

from bench.bounds import overshoot_bound_bytes
from bench.claims.holding import HELD_RATIO
from bench.claims.verdict import megabytes
from bench.page.rows import Rows
from bench.results import (
    AgentCost,
    Case,
    Latency,
    Overshoot,
    Paused,
    Poll,
    QuotaPath,
    QuotaThread,
    Reaction,
    RequestPath,
    Results,
    Throttled,
    Throughput,
)


class _OfACase(Protocol):
    @property
    def case(self) -> Case: ...


_WHOSE: tuple[tuple[str, Callable[[_OfACase], str]], ...] = (
    ("system", lambda entry: entry.case.system),
    ("client", lambda entry: entry.case.whose),
    ("conn.", lambda entry: str(entry.case.connections)),
)


def measured(results: Results) -> Iterator[Rows]:
    """A table for each thing of which there is something."""
    if results.reactions:
        yield _reactions(results.reactions)
    if results.overshoots:
        yield _overshoots(results.overshoots)
    if results.throttled:
        yield _throttled(results.throttled)
    if results.paused:
        yield _paused(results.paused)
        yield _leaks(results.paused)
    if results.throughput:
        yield _throughput(results.throughput)
    if results.latency:
        yield _latency(results.latency)
    if results.request_path:
        yield _request_path(results.request_path)
    if results.quota_path:
        yield _quota_path(results.quota_path, results.quota_threads)
    if results.polls:
        yield _polls(results.polls)
    if results.agents:
        yield _agents(results.agents)


def _reactions(reactions: Sequence[Reaction]) -> Rows:
    return Rows.of(
        "Reaction: from the breach until every broker enforces",
        reactions,
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


def _overshoots(overshoots: Sequence[Overshoot]) -> Rows:
    return Rows.of(
        "Overshoot: a volume filled flat out by replication",
        overshoots,
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


def _throttled(steps: Sequence[Throttled]) -> Rows:
    return Rows.of(
        "THROTTLE: steps and ramps of the factor",
        steps,
        (
            *_WHOSE,
            ("step", lambda step: step.step),
            ("MB/s before", lambda step: f"{step.baseline_rate / 1e6:.1f}"),
            ("settled s", lambda step: _seconds(step.settled_seconds)),
            ("silence s", lambda step: f"{step.longest_silence_seconds:.1f}"),
            ("÷ target", lambda step: "-" if step.mean_ratio is None else f"{step.mean_ratio:.2f}"),
        ),
        "Settled: the time until the mean of five seconds is within 20 % of the target, `-` where that did "
        "not happen within 16 s, and for ramps. Silence: the longest of any connection, with a resolution of "
        "0.1 s. ÷ target: the mean of the last 11 s of a step, and of the whole of a ramp.",
    )


def _paused(pauses: Sequence[Paused]) -> Rows:
    return Rows.of(
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


def _mark(pause: Paused) -> str:
    if pause.offered_ratio is None:
        return " ?"
    return " !" if pause.offered_ratio > HELD_RATIO else ""


def _leaks(pauses: Sequence[Paused]) -> Rows:
    return Rows.of(
        "PAUSE: when it lands, and for whom",
        pauses,
        (
            *_WHOSE,
            ("pause", lambda pause: f"{pause.seconds:g} s"),
            (
                "MB in each fifth",
                lambda pause: " ".join(f"{count / 1e6:.1f}" for count in pause.landed_by_fifth_bytes),
            ),
            ("MB by connection: least", lambda pause: f"{min(pause.landed_by_connection_bytes) / 1e6:.2f}"),
            ("median", lambda pause: f"{median(pause.landed_by_connection_bytes) / 1e6:.2f}"),
            ("most", lambda pause: f"{max(pause.landed_by_connection_bytes) / 1e6:.2f}"),
        ),
    )


def _throughput(entries: Sequence[Throughput]) -> Rows:
    return Rows.of(
        "OPEN: throughput, flat out",
        entries,
        (
            *_WHOSE,
            ("MB/s by round", lambda entry: " ".join(f"{rate / 1e6:.0f}" for rate in entry.rates)),
            ("median", lambda entry: f"{median(entry.rates) / 1e6:.0f}"),
            ("CPU s/GB", lambda entry: f"{median(entry.processor_seconds_per_gigabyte):.2f}"),
        ),
        "One system at a time, in alternating rounds of 3 s; a system's round is compared with the stock "
        "broker's of the same turn. CPU: of the broker's process, which noise of the machine touches less.",
    )


def _latency(entries: Sequence[Latency]) -> Rows:
    return Rows.of(
        "OPEN: latency at 1 MB/s",
        entries,
        (
            *_WHOSE,
            (
                "median ms by round",
                lambda entry: " ".join(f"{value:.1f}" for value in entry.median_milliseconds),
            ),
            ("median", lambda entry: f"{median(entry.median_milliseconds):.1f}"),
            ("99 % ms by round", lambda entry: " ".join(f"{value:.0f}" for value in entry.p99_milliseconds)),
            ("median", lambda entry: f"{median(entry.p99_milliseconds):.0f}"),
        ),
        "From send to acknowledgement of each record, in alternating rounds of 4 s.",
    )


def _request_path(entries: Sequence[RequestPath]) -> Rows:
    kinds = list(dict.fromkeys(entry.kind for entry in entries))
    counts = sorted({entry.clients for entry in entries})
    by_key = {(entry.kind, entry.clients): entry for entry in entries}
    return Rows(
        "Request path: metering one produce request, ns",
        ("who meters", *(f"{count:,} clients" for count in counts)),
        tuple(
            (
                kind.lower().replace("_", " "),
                *(
                    f"{by_key[kind, count].nanoseconds:.0f} ± {by_key[kind, count].spread_nanoseconds:.0f}"
                    if (kind, count) in by_key
                    else "-"
                    for count in counts
                ),
            )
            for kind in kinds
        ),
        "JMH: the processor time of one thread in the broker's own quota code "
        "(`maybeRecordAndGetThrottleTimeMs`), the median of the iterations and half of how far they lie "
        "apart; clients in turn, each with a user and a client id of its own. Stock meters nobody where no "
        "quota is set; a callback always meters. Without quotas the plug-in keeps 2,000 tag sets apart; the "
        "other clients share one.",
    )


def _quota_path(entries: Sequence[QuotaPath], threads: Sequence[QuotaThread]) -> Rows:
    kinds = list(dict.fromkeys(entry.kind for entry in entries))
    parts = sorted({entry.part for entry in entries})
    by_key = {(entry.kind, entry.part): entry for entry in entries}
    used = ", ".join(f"{thread.name} {thread.milliseconds_per_second:.1f} ms" for thread in threads)
    return Rows(
        "Request path with very many quotas, ns",
        ("who is asked", *parts),
        tuple(
            (
                kind.lower().replace("_", " "),
                *(
                    f"{by_key[kind, part].nanoseconds:.0f} ± {by_key[kind, part].spread_nanoseconds:.0f}"
                    for part in parts
                ),
            )
            for kind in kinds
        ),
        "As above, with 10,000 clients, 100 groups (half of them with a total of the cluster) that have "
        "three of four clients, 100 overrides, and 1,000 topics of eight partitions, each with an ACL, 100 "
        "of them with a threshold. Stock has the authorizer with its ACLs, and a quota that each client has "
        f"for itself. The plug-in's own threads use, per second: {used}.",
    )


def _polls(polls: Sequence[Poll]) -> Rows:
    return Rows.of(
        "A look of the governor",
        polls,
        (
            ("state", lambda poll: poll.state),
            ("tag sets", lambda poll: f"{poll.clients:,}"),
            ("ms", lambda poll: f"{poll.milliseconds:.2f}"),
        ),
        "Processor time of the plug-in's own thread, which looks ten times a second, in a JVM with the "
        "broker's quota code and every client in use.",
    )


def _agents(agents: Sequence[AgentCost]) -> Rows:
    return Rows.of(
        "Agents in OPEN",
        agents,
        (
            ("broker", lambda agent: str(agent.broker_id)),
            ("% of a core", lambda agent: f"{agent.processor_ratio:.1%}"),
            ("MiB", lambda agent: f"{agent.memory_bytes / 2**20:.0f}"),
        ),
        "Each with its probe process, at default settings, over 20 s. Pages that the two share count once.",
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _back(value: float | None, pause: Paused) -> str:
    return f"> {pause.watched_seconds:g} s" if value is None else f"{value:.1f} s"
