"""Results as tables for the terminal and as docs/bench.md: both from the same rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from bench.claims import HELD_RATIO, Verdict, megabytes
from bench.results import Paused, Results, Throttled, Throughput

_HEAD = """\
# How producers are held, measured

<!-- Written by `make bench`. Do not edit. -->

One Kafka broker for each system; in THROTTLE and PAUSE all systems of a case run at the same time with
the same producers, so that the machine's noise is the same for all. Nothing absolute is promised:
compare within a case. What has landed is read from the log end offsets ten times a second, one topic
for each connection. Producers offer 20 MB/s together, in records of 10 kB.

| system | what holds producers |
|---|---|
| stock | nothing |
| governor | kquota's quota callback, stock window W = 11 x 1 s |
| governor W=3 | the same with `quota.window.num=3` |
| fence | the callback, and kquota's authorizer for PAUSE; its THROTTLE is the governor's |
| peer | the Strimzi quotas plug-in; its disk is filled, which it looks at every 2 s; no THROTTLE |
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where and when it ran."""

    date: str
    cores: int
    load_before: tuple[float, float, float]
    load_after: tuple[float, float, float]
    kafka_version: str
    kquota_version: str
    peer: str
    minutes: float


@dataclass(frozen=True, slots=True)
class Rows:
    """One table: its title, its columns and its rows, all text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """As Markdown."""
        lines = [f"## {self.title}", "", *([self.note, ""] if self.note else [])]
        lines += [_line(self.columns), _line(["---"] * len(self.columns)), *map(_line, self.rows)]
        return "\n".join(lines) + "\n"

    def table(self) -> Table:
        """For a terminal of 80 columns."""
        table = Table(title=self.title, title_justify="left", padding=(0, 1), pad_edge=False, box=None)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


def tables(results: Results, verdicts: Sequence[Verdict]) -> list[Table]:
    """What the terminal shows."""
    return [rows.table() for rows in (*_measured(results), _verdicts(verdicts))]


def page(results: Results, verdicts: Sequence[Verdict], machine: Machine) -> str:
    """The whole of docs/bench.md."""
    parts = [_HEAD, _machine(machine), _aims(verdicts), *(rows.markdown() for rows in _measured(results))]
    return "\n".join(parts)


def _measured(results: Results) -> list[Rows]:
    found = []
    if results.throttled:
        found.append(_throttled(results.throttled))
    if results.paused:
        found.append(_paused(results.paused))
        found.append(_leaks(results.paused))
    if results.throughput:
        found.append(_throughput(results.throughput))
    return found


def _throttled(steps: Sequence[Throttled]) -> Rows:
    return Rows(
        "THROTTLE: steps of the factor",
        ("system, client x connections", "step", "MB/s before", "settled s", "silence s", "÷ target"),
        tuple(
            (
                str(step.case),
                step.step,
                f"{step.baseline_rate / 1e6:.1f}",
                _seconds(step.settled_seconds),
                f"{step.longest_silence_seconds:.1f}",
                f"{step.mean_ratio:.2f}",
            )
            for step in steps
        ),
        "Settled: the time until the mean of five seconds is within 20 % of the target, `-` where that did "
        "not happen within 16 s. Silence: the longest of any connection, with a resolution of 0.1 s. "
        "÷ target: the mean of the last 11 s of the step.",
    )


def _paused(pauses: Sequence[Paused]) -> Rows:
    return Rows(
        "PAUSE: what lands, and when clients are back",
        (
            "system, client x connections",
            "pause",
            "landed",
            "after 0.5 s",
            "first back",
            "last back",
            "errors",
        ),
        tuple(
            (
                str(pause.case),
                f"{pause.seconds:g} s",
                megabytes(pause.landed_bytes) + _mark(pause),
                megabytes(pause.landed_late_bytes),
                _back(pause.first_resumed_seconds, pause),
                _back(pause.slowest_resumed_seconds, pause),
                f"{pause.failed_records} {', '.join(pause.errors)}".strip(),
            )
            for pause in pauses
        ),
        "Landed counts from the order to pause. `!`: more than half of what would have landed anyway, so "
        "nobody was held. `?`: nothing flowed before, clients were not yet back from the other pause. Back: "
        "a connection lands at half its rate again, counted from the order to go on; `>` where one did not "
        "in the time watched. For the peer both orders include its look at the disk, up to 2 s. Errors: "
        "records that a producer gave up, in both pauses of its case.",
    )


def _mark(pause: Paused) -> str:
    if pause.offered_ratio is None:
        return " ?"
    return " !" if pause.offered_ratio > HELD_RATIO else ""


def _leaks(pauses: Sequence[Paused]) -> Rows:
    return Rows(
        "PAUSE: when it lands, and for whom",
        (
            "system, client x connections",
            "pause",
            "MB in each fifth",
            "MB by connection: least",
            "median",
            "most",
        ),
        tuple(
            (
                str(pause.case),
                f"{pause.seconds:g} s",
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
        ("system, client x connections", "MB/s by round", "median", "CPU s/GB"),
        tuple(
            (
                str(entry.case),
                " ".join(f"{rate / 1e6:.0f}" for rate in entry.rates),
                f"{median(entry.rates) / 1e6:.0f}",
                f"{median(entry.processor_seconds_per_gigabyte):.2f}",
            )
            for entry in entries
        ),
        "One system at a time, in alternating rounds of 3 s. CPU: of the broker's process, which noise of "
        "the machine touches less.",
    )


def _verdicts(verdicts: Sequence[Verdict]) -> Rows:
    return Rows(
        "Claims (asserted) and aims",
        ("statement", "measured", ""),
        tuple((verdict.statement, verdict.measured, _outcome(verdict)) for verdict in verdicts),
    )


def _outcome(verdict: Verdict) -> str:
    if verdict.asserted:
        return "holds" if verdict.holds else "BROKEN"
    return "met" if verdict.holds else "missed"


def _aims(verdicts: Sequence[Verdict]) -> str:
    text = _verdicts(verdicts).markdown()
    missed = [verdict for verdict in verdicts if not verdict.holds and verdict.cause]
    if missed:
        text += "\nMissed aims, and what we take for the cause:\n\n"
        text += "\n".join(
            f"- {verdict.statement}: {verdict.measured}. {_sentence(verdict.cause)}" for verdict in missed
        )
        text += "\n"
    return text


def _machine(machine: Machine) -> str:
    before, after = (
        " ".join(f"{load:.1f}" for load in loads) for loads in (machine.load_before, machine.load_after)
    )
    return (
        f"Run on {machine.date}: {machine.cores} cores, load average {before} before and {after} after "
        f"(1, 5, 15 minutes); Kafka {machine.kafka_version}, kquota {machine.kquota_version}, "
        f"{machine.peer}; {machine.minutes:.0f} minutes.\n"
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _back(value: float | None, pause: Paused) -> str:
    return f"> {pause.watched_seconds:g} s" if value is None else f"{value:.1f} s"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
