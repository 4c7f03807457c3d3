"""Results as tables for the terminal and as docs/bench.md: both from the same rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from bench.claims import Verdict
from bench.page.measured import measured
from bench.page.rows import Rows
from bench.results import Results
from bench.store import Saved

__all__ = ["page", "tables"]

_HEAD = """\
# How producers are held, measured

<!-- Written by `make bench`. Do not edit. -->

In THROTTLE and PAUSE there is one Kafka broker for each system, and all systems of a case run at the same
time with the same producers, so that the machine's noise is the same for all; in a PAUSE at more than 5
MB/s, or of 100 connections, one after the other. Nothing absolute is promised: compare within a case. What
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


def tables(results: Results, verdicts: Sequence[Verdict]) -> list[Table]:
    """What the terminal shows."""
    return [rows.table() for rows in (*measured(results), _verdicts(verdicts))]


def page(
    saved: Sequence[Saved], verdicts: Sequence[Verdict], missing: Sequence[str] = (), *, full: bool
) -> str:
    """The whole of docs/bench.md; `missing` names what belongs to the profile and was not measured."""
    results = Results.together(entry.results for entry in saved)
    command = "make bench BENCH_ARGS=--full" if full else "make bench"
    parts = [_HEAD, _origin(saved, command)]
    if missing:
        parts.append(f"Not measured in this run: {', '.join(f'`{name}`' for name in missing)}.\n")
    parts += [_aims(verdicts), *(rows.markdown() for rows in measured(results))]
    return "\n".join(parts)


def _verdicts(verdicts: Sequence[Verdict]) -> Rows:
    return Rows.of(
        "Claims (asserted) and aims",
        verdicts,
        (
            ("statement", lambda verdict: verdict.statement),
            ("measured", lambda verdict: verdict.measured),
            ("", _outcome),
        ),
        "Claims are ratios within one run: `make bench` fails where one does not hold. An aim that is missed "
        "fails nothing.",
    )


def _outcome(verdict: Verdict) -> str:
    if verdict.asserted:
        return "holds" if verdict.holds else "BROKEN"
    return "met" if verdict.holds else "missed"


def _aims(verdicts: Sequence[Verdict]) -> str:
    text = _verdicts(verdicts).markdown()
    missed = [verdict for verdict in verdicts if not verdict.holds and verdict.cause]
    if missed:
        text += "\nWhat is missed, what we take for the cause, and what could come nearer:\n\n"
        text += "\n".join(
            f"- {verdict.statement}: {verdict.measured}. {_sentence(verdict.cause)}"
            f"{f' Next: {verdict.idea}.' if verdict.idea else ''}"
            for verdict in missed
        )
        text += "\n"
    return text


def _origin(saved: Sequence[Saved], command: str) -> str:
    days = sorted({entry.measured_at[:10] for entry in saved})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    loads = [entry.load for entry in saved]
    machines = list(dict.fromkeys(str(entry.machine) for entry in saved))
    minutes = sum(entry.seconds for entry in saved) / 60
    lines = [
        f"Measured by `{command}` on {when}, in {minutes:.0f} minutes. {machine}." for machine in machines
    ]
    return (
        "\n".join(lines) + f"\nLoad average when a measurement began: {min(loads):.1f} to {max(loads):.1f}.\n"
    )


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
