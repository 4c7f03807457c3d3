"""Claims about what kquota costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from bench.claims.verdict import Verdict
from bench.results import AgentCost, Poll, QuotaPath, RequestPath, Results, Throughput
from bench.systems import STOCK

_MIN_OPEN_RATIO, _AIMED_OPEN_RATIO = 0.85, 0.99
_MAX_REQUEST_RATIO, _AIMED_REQUEST_RATIO = 3.0, 1.2
_MAX_QUOTA_PATH_RATIO, _AIMED_QUOTA_PATH_RATIO = 3.0, 1.3
_AIMED_POLL_MILLISECONDS = 3.0
_AIMED_AGENT_BYTES, _AIMED_AGENT_PROCESSOR = 64 * 2**20, 0.02
_STOCK_KIND, _KQUOTA_KIND = "STOCK", "KQUOTA"


def cost_verdicts(results: Results) -> Iterator[Verdict]:
    """All of them."""
    yield from _open(results.throughput)
    yield from _request_path(results.request_path)
    yield from _quota_path(results.quota_path)
    if results.polls:
        yield _polls(results.polls)
    if results.agents:
        yield from _agents(results.agents)


def paired_ratios(entry: Throughput, stock: Throughput) -> list[float]:
    """By round, this system's rate ÷ the stock broker's beside it."""
    return [own / other for own, other in zip(entry.rates, stock.rates, strict=True)]


def _open(entries: Sequence[Throughput]) -> Iterator[Verdict]:
    stock = {(entry.case.whose, entry.case.connections): entry for entry in entries if _is_stock(entry)}
    for entry in entries:
        beside = stock.get((entry.case.whose, entry.case.connections))
        if _is_stock(entry) or beside is None:
            continue
        ratios = paired_ratios(entry, beside)
        ratio = median(ratios)
        spread = f"{ratio:.3f} (median of {len(ratios)} pairs, {min(ratios):.2f} to {max(ratios):.2f})"
        yield Verdict(
            f"OPEN throughput of {entry.case} is at least {_MIN_OPEN_RATIO:g} of stock",
            spread,
            ratio >= _MIN_OPEN_RATIO,
            asserted=True,
        )
        yield Verdict(
            f"OPEN throughput of {entry.case} ÷ stock is at least {_AIMED_OPEN_RATIO:g}",
            spread,
            ratio >= _AIMED_OPEN_RATIO,
            asserted=False,
            cause="see how far the pairs lie apart: a difference within that is the machine's",
            idea="more pairs, on a machine that clients and brokers don't share",
        )


def _is_stock(entry: Throughput) -> bool:
    return entry.case.system == STOCK


def _request_path(entries: Sequence[RequestPath]) -> Iterator[Verdict]:
    stock = {entry.clients: entry.nanoseconds for entry in entries if entry.kind == _STOCK_KIND}
    own = {entry.clients: entry.nanoseconds for entry in entries if entry.kind == _KQUOTA_KIND}
    ratios = {clients: own[clients] / stock[clients] for clients in sorted(own.keys() & stock.keys())}
    if not ratios:
        return
    told = ", ".join(f"{ratio:.2f} with {clients:,} clients" for clients, ratio in ratios.items())
    worst = max(ratios.values())
    yield Verdict(
        f"request path: at most {_MAX_REQUEST_RATIO:g} times stock with quotas",
        told,
        worst <= _MAX_REQUEST_RATIO,
        asserted=True,
    )
    yield Verdict(
        f"request path: at most {_AIMED_REQUEST_RATIO:g} times stock with quotas",
        told,
        worst <= _AIMED_REQUEST_RATIO,
        asserted=False,
        cause="on each request the plug-in looks at the clock, for its decision is a lease, and counts the "
        "request; with many clients what it remembers of each, and counts, is memory that no cache holds",
        idea="what is remembered and what is counted of a client in one place in memory",
    )


def _quota_path(entries: Sequence[QuotaPath]) -> Iterator[Verdict]:
    stock = {entry.part: entry.nanoseconds for entry in entries if entry.kind == _STOCK_KIND}
    ratios = {
        f"{entry.part} {entry.kind.lower().replace('_', ' ')}": entry.nanoseconds / stock[entry.part]
        for entry in entries
        if entry.kind != _STOCK_KIND and entry.part in stock
    }
    if not ratios:
        return
    told = ", ".join(f"{ratio:.2f} to {name}" for name, ratio in ratios.items())
    worst = max(ratios.values())
    for bound, asserted in ((_MAX_QUOTA_PATH_RATIO, True), (_AIMED_QUOTA_PATH_RATIO, False)):
        yield Verdict(
            f"many clients, groups and topics: at most {bound:g} times stock before and after an append",
            told,
            worst <= bound,
            asserted=asserted,
            cause="the plug-in's own threads go through all clients again and again, and what a request "
            "needs is no longer in the caches; in absolute terms see the table",
            idea="fewer rounds of those threads while no limit is near",
        )


def _polls(polls: Sequence[Poll]) -> Verdict:
    worst = max(polls, key=lambda poll: poll.milliseconds)
    return Verdict(
        f"a look of the governor with 10,000 tag sets takes at most {_AIMED_POLL_MILLISECONDS:g} ms",
        ", ".join(f"{poll.milliseconds:.1f} ms in {poll.state}" for poll in polls),
        worst.milliseconds <= _AIMED_POLL_MILLISECONDS,
        asserted=False,
        cause="it reads the rates of a thousand tag sets, and the broker's samples of each are memory "
        "that no cache holds. By default there are at most 2,000 (kquota.tag.sets.max)",
        idea="to look at fewer of them in a round, when there are more than the default",
    )


def _agents(agents: Sequence[AgentCost]) -> Iterator[Verdict]:
    memory = max(agent.memory_bytes for agent in agents)
    processor = max(agent.processor_ratio for agent in agents)
    yield Verdict(
        f"an agent with its probe process takes at most {_AIMED_AGENT_BYTES / 2**20:.0f} MiB of memory",
        f"at most {memory / 2**20:.0f} MiB of {len(agents)} agents",
        memory <= _AIMED_AGENT_BYTES,
        asserted=False,
        cause="most of it is there before the agent does anything: an interpreter, and pydantic-settings and "
        "confluent-kafka with all that they import",
        idea="to read the configuration in a process that ends, and hand over what was read",
    )
    yield Verdict(
        f"an agent uses at most {_AIMED_AGENT_PROCESSOR:.0%} of a core in OPEN",
        ", ".join(f"{agent.processor_ratio:.1%}" for agent in agents),
        processor <= _AIMED_AGENT_PROCESSOR,
        asserted=False,
        cause="five looks at the disks a second, each by way of the probe process, and the threads of the "
        "connections",
        idea="to look less often while all disks are far from their limits",
    )
