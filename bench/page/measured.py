"""What was measured, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.bounds import overshoot_bound_bytes
from bench.claims.holding import HELD_RATIO
from bench.claims.verdict import megabytes
from bench.page.rows import Rows
from bench.results import (
    AgentCost,
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
    return Rows(
        "Reaction: from the breach until every broker enforces",
        ("system", "brokers", "breaches", "median s", "worst s", "release median s", "worst s"),
        tuple(
            (
                entry.system,
                str(entry.brokers),
                str(len(entry.pause_seconds)),
                f"{median(entry.pause_seconds):.2f}",
                f"{max(entry.pause_seconds):.2f}",
                f"{median(entry.release_seconds):.2f}",
                f"{max(entry.release_seconds):.2f}",
            )
            for entry in reactions
        ),
        "A file is grown on one broker's volume beyond its hard limit, and removed again. kquota: agents at "
        "default settings, until the last broker's plug-in says that it enforces PAUSE. Peer: until the last "
        "broker logs its new factor, with a look at the disks every 2 s, its quickest setting that works.",
    )


def _overshoots(overshoots: Sequence[Overshoot]) -> Rows:
    return Rows(
        "Overshoot: a volume filled flat out by replication",
        ("held by", "zone", "fills at", "reaction s", "past hard", "bound"),
        tuple(
            (
                f"governor W={seen.window_seconds:g}" if not seen.fence else "fence",
                megabytes(seen.zone_bytes),
                f"{seen.fill_rate / 1e6:.0f} MB/s",
                f"{seen.reaction_seconds:.2f}",
                megabytes(seen.past_hard_bytes) if seen.reached else "not reached",
                megabytes(overshoot_bound_bytes(seen)),
            )
            for seen in overshoots
        ),
        "The third of three brokers leads nothing and follows everything. Zone: from the soft to the hard "
        "limit. Fills at: the fastest second before the pause. Past hard: the farthest in 12 s of PAUSE; "
        "`not reached`: not within 45 s of the soft limit. "
        "Bound: r·(τ + W/2) + one request per connection + the leak with which docs/sizing.md sizes limits.",
    )


def _throttled(steps: Sequence[Throttled]) -> Rows:
    return Rows(
        "THROTTLE: steps and ramps of the factor",
        ("system", "client", "conn.", "step", "MB/s before", "settled s", "silence s", "÷ target"),
        tuple(
            (
                step.case.system,
                step.case.whose,
                str(step.case.connections),
                step.step,
                f"{step.baseline_rate / 1e6:.1f}",
                _seconds(step.settled_seconds),
                f"{step.longest_silence_seconds:.1f}",
                "-" if step.mean_ratio is None else f"{step.mean_ratio:.2f}",
            )
            for step in steps
        ),
        "Settled: the time until the mean of five seconds is within 20 % of the target, `-` where that did "
        "not happen within 16 s, and for ramps. Silence: the longest of any connection, with a resolution of "
        "0.1 s. ÷ target: the mean of the last 11 s of a step, and of the whole of a ramp.",
    )


def _paused(pauses: Sequence[Paused]) -> Rows:
    return Rows(
        "PAUSE: what lands, and when clients are back",
        (
            "system",
            "client",
            "conn.",
            "pause",
            "MB/s before",
            "landed",
            "after 0.5 s",
            "first back",
            "last back",
            "errors",
        ),
        tuple(
            (
                *_whose_pause(pause),
                f"{pause.rate_before / 1e6:.1f}",
                megabytes(pause.landed_bytes) + _mark(pause),
                megabytes(pause.landed_late_bytes),
                _back(pause.first_resumed_seconds, pause),
                _back(pause.slowest_resumed_seconds, pause),
                f"{pause.failed_records} {', '.join(pause.errors)}".strip(),
            )
            for pause in pauses
        ),
        "Landed counts from the order to pause. `!`: more than half of what would have landed anyway, so "
        "nobody was held. `?`: nothing flowed before. Back: a connection lands at half its rate again, "
        "counted from the order to go on; `>` where one did not in the time watched. For the peer both "
        "orders include its look at the disk, up to 2 s. Errors: records that a producer gave up. A "
        "transaction's marker counts as a record.",
    )


def _whose_pause(pause: Paused) -> tuple[str, ...]:
    case = pause.case
    return case.system, case.whose, str(case.connections), f"{pause.seconds:g} s"


def _mark(pause: Paused) -> str:
    if pause.offered_ratio is None:
        return " ?"
    return " !" if pause.offered_ratio > HELD_RATIO else ""


def _leaks(pauses: Sequence[Paused]) -> Rows:
    return Rows(
        "PAUSE: when it lands, and for whom",
        (
            "system",
            "client",
            "conn.",
            "pause",
            "MB in each fifth",
            "MB by connection: least",
            "median",
            "most",
        ),
        tuple(
            (
                *_whose_pause(pause),
                " ".join(f"{count / 1e6:.1f}" for count in pause.landed_by_fifth_bytes),
                f"{min(pause.landed_by_connection_bytes) / 1e6:.2f}",
                f"{median(pause.landed_by_connection_bytes) / 1e6:.2f}",
                f"{max(pause.landed_by_connection_bytes) / 1e6:.2f}",
            )
            for pause in pauses
        ),
    )


def _throughput(entries: Sequence[Throughput]) -> Rows:
    return Rows(
        "OPEN: throughput, flat out",
        ("system", "client", "conn.", "MB/s by round", "median", "CPU s/GB"),
        tuple(
            (
                entry.case.system,
                entry.case.whose,
                str(entry.case.connections),
                " ".join(f"{rate / 1e6:.0f}" for rate in entry.rates),
                f"{median(entry.rates) / 1e6:.0f}",
                f"{median(entry.processor_seconds_per_gigabyte):.2f}",
            )
            for entry in entries
        ),
        "One system at a time, in alternating rounds of 3 s; a system's round is compared with the stock "
        "broker's of the same turn. CPU: of the broker's process, which noise of the machine touches less.",
    )


def _latency(entries: Sequence[Latency]) -> Rows:
    return Rows(
        "OPEN: latency at 1 MB/s",
        ("system", "client", "conn.", "median ms by round", "median", "99 % ms by round", "median"),
        tuple(
            (
                entry.case.system,
                entry.case.whose,
                str(entry.case.connections),
                " ".join(f"{value:.1f}" for value in entry.median_milliseconds),
                f"{median(entry.median_milliseconds):.1f}",
                " ".join(f"{value:.0f}" for value in entry.p99_milliseconds),
                f"{median(entry.p99_milliseconds):.0f}",
            )
            for entry in entries
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
    return Rows(
        "A look of the governor",
        ("state", "tag sets", "ms"),
        tuple((poll.state, f"{poll.clients:,}", f"{poll.milliseconds:.2f}") for poll in polls),
        "Processor time of the plug-in's own thread, which looks ten times a second, in a JVM with the "
        "broker's quota code and every client in use.",
    )


def _agents(agents: Sequence[AgentCost]) -> Rows:
    return Rows(
        "Agents in OPEN",
        ("broker", "% of a core", "MiB"),
        tuple(
            (
                str(agent.broker_id),
                f"{agent.processor_ratio:.1%}",
                f"{agent.memory_bytes / 2**20:.0f}",
            )
            for agent in agents
        ),
        "Each with its probe process, at default settings, over 20 s. Pages that the two share count once.",
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _back(value: float | None, pause: Paused) -> str:
    return f"> {pause.watched_seconds:g} s" if value is None else f"{value:.1f} s"
