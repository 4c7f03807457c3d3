"""The end of the demo in numbers, and whether the promise was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kquota.display.figures import size_text
from kquota.policy.decision import State
from testbed.demo.scenario import Outcome
from testbed.demo.tally import Tally, between

_EXPECTED_STATES = [State.OPEN, State.THROTTLE, State.PAUSE, State.OPEN]
_RESUME_LIMIT_SECONDS = 15.0
_LEAST_OF_RATE = 0.9
"""The least share of its rate that an application keeps where it writes to no full volume."""


@dataclass(frozen=True)
class Promise:
    """One promise, the observation, and whether it was kept."""

    text: str
    seen: str
    kept: bool


def protected_promises(
    tally: Tally, outcome: Outcome, broker_count: int, topics: tuple[str, str]
) -> list[Promise]:
    """kquota's promises, compared with the observations; `topics`: on the full volume, and elsewhere."""
    alive = broker_count - len(tally.died_at)
    passed = _passed_through(tally.states, _EXPECTED_STATES)
    full = [peak for peak in tally.peaks.values() if peak.free_bytes <= 0]
    unhealthy = [entry for entry in outcome.partitions if entry.under_replicated or entry.leader is None]
    filling, other = topics
    return [
        Promise(
            "brokers alive, log dirs online",
            f"{alive} of {broker_count}, {len(tally.offline_log_dirs)} log dirs offline",
            alive == broker_count and not tally.offline_log_dirs,
        ),
        Promise(
            "no volume ran full", f"{len(full)} of {len(tally.peaks)} did", bool(tally.peaks) and not full
        ),
        Promise(
            "all brokers held and let go together",
            " ".join(state.value for state in tally.states) or "nothing enforced",
            passed,
        ),
        Promise(
            f"nothing is written to {filling} in PAUSE",
            f"{_bytes(outcome.landed_in_pause_bytes)} in {_seconds(outcome.pause_seconds)}",
            outcome.landed_in_pause_bytes == 0,
        ),
        _keeps_its_rate(other, outcome.other_rates),
        Promise(
            "consumers go on reading in PAUSE",
            _bytes(outcome.consumed_in_pause_bytes) + (", all is read" if outcome.unread_bytes == 0 else ""),
            bool(outcome.consumed_in_pause_bytes) or outcome.unread_bytes == 0,
        ),
        Promise(
            "producers lost no record",
            f"{outcome.failed_records or 0} given up",
            outcome.failed_records == 0,
        ),
        Promise(
            f"producers resume within {_RESUME_LIMIT_SECONDS:g} s",
            f"{_seconds(outcome.resumed_seconds)}, then {_bytes(outcome.flowing_bytes_per_second)}/s",
            outcome.resumed_seconds is not None and outcome.resumed_seconds <= _RESUME_LIMIT_SECONDS,
        ),
        Promise(
            "all partitions in sync at the end",
            f"{len(outcome.partitions) - len(unhealthy)} of {len(outcome.partitions)}",
            bool(outcome.partitions) and not unhealthy,
        ),
    ]


def _keeps_its_rate(topic: str, rates: tuple[float, float] | None) -> Promise:
    before, in_pause = rates or (None, None)
    ratio = in_pause / before if before and in_pause else 0.0
    return Promise(
        f"{topic} keeps its rate in PAUSE",
        f"{_bytes(in_pause)}/s, {ratio:.0%} of {_bytes(before)}/s",
        ratio >= _LEAST_OF_RATE,
    )


def protected_verdict(tally: Tally, outcome: Outcome, promises: Sequence[Promise]) -> RenderableType:
    """Peaks, reaction, and the promises."""
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_row("hard limit breached until all brokers hold producers", _seconds(tally.reaction_seconds))
    facts.add_row("space free until all brokers let producers through", _seconds(tally.release_seconds))
    kept = all(promise.kept for promise in promises) and outcome.stuck is None
    end = Text(
        "The promise was kept." if kept else "THE PROMISE WAS NOT KEPT.",
        style="green" if kept else "bold red",
    )
    stuck = [Text(outcome.stuck, style="red")] if outcome.stuck else []
    return Group(peak_table(tally), Text(), facts, Text(), promise_table(promises), Text(), *stuck, end)


def peak_table(tally: Tally) -> Table:
    """How full each volume was at its fullest."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold dim")
    for title in ("BROKER", "VOLUME"):
        table.add_column(title)
    for title in ("PEAK", "OF", "%", "PAST HARD", "LEFT"):
        table.add_column(title, justify="right")
    for (broker_id, name), peak in sorted(tally.peaks.items()):
        share = 100 * peak.consumed_bytes / peak.capacity_bytes
        table.add_row(
            str(broker_id),
            name,
            size_text(peak.consumed_bytes),
            size_text(peak.capacity_bytes),
            f"{share:.1f}%",
            size_text(peak.past_hard_bytes) if peak.past_hard_bytes else "-",
            Text(size_text(peak.free_bytes), style="" if peak.free_bytes > 0 else "bold red"),
        )
    return table


def promise_table(promises: Sequence[Promise]) -> Table:
    """A row per promise: in a narrow terminal only what was seen goes on below, so a promise can be found."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    table.add_column(no_wrap=True)
    table.add_column()
    for promise in promises:
        mark = Text("kept", style="green") if promise.kept else Text("BROKEN", style="bold red")
        table.add_row(mark, promise.text, promise.seen)
    return table


def unprotected_verdict(tally: Tally, outcome: Outcome, broker_count: int) -> RenderableType:
    """The effect of the same load without kquota."""
    aftermath = outcome.aftermath
    behind = sum(1 for entry in outcome.partitions if entry.under_replicated)
    leaderless = sum(1 for entry in outcome.partitions if entry.leader is None)
    facts = Table.grid(padding=(0, 2, 0, 0))
    until_full = between(tally.breached_at, aftermath.first_full_at)
    facts.add_row("from where kquota would have paused to a full disk", _seconds(until_full))
    facts.add_row("volumes full", f"{len(aftermath.full_volumes)} of {len(tally.peaks)}")
    facts.add_row("log dirs taken offline", str(len(aftermath.offline_log_dirs)))
    facts.add_row('"No space left on device" in the brokers\' logs', str(aftermath.no_space_errors))
    facts.add_row("brokers alive", f"{broker_count - len(aftermath.dead_brokers)} of {broker_count}")
    facts.add_row("partitions under-replicated", f"{behind} of {len(outcome.partitions)}")
    facts.add_row("partitions without a leader", f"{leaderless} of {len(outcome.partitions)}")
    if ran_full(outcome):
        end = Text("Without kquota the disks ran full.", style="bold red")
    else:
        end = Text("No disk ran full: nothing was demonstrated.", style="bold red")
    return Group(peak_table(tally), Text(), facts, Text(), end)


def ran_full(outcome: Outcome) -> bool:
    """Whether the play without kquota has shown what it was to show."""
    return bool(outcome.aftermath.full_volumes and outcome.aftermath.offline_log_dirs)


def _passed_through(states: Sequence[State], expected: Sequence[State]) -> bool:
    """Whether the states contain the expected ones in that order (returns to THROTTLE between are fine)."""
    following = iter(states)
    return all(any(state is wanted for state in following) for wanted in expected)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def _bytes(value: float | None) -> str:
    return "-" if value is None else f"{size_text(value)}B"
