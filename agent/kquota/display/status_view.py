"""A status document on a terminal: the decision, its reason, the brokers that apply it, a line per volume."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from kquota.display.figures import STATE_STYLES, size_text, state_text
from kquota.display.first_screen import FEW_BROKERS, first_of, first_rows
from kquota.display.status_table import Order, Row, applied_state, longest_name, status_rows, status_table
from kquota.formats.warnings import SIGNING_OFF, printed

MIN_COLUMNS = 60
_MAX_CLIENTS = 4
_MAX_TOPICS = 4
_MAX_ORDERS = 5
_FEWEST_ROWS = 3
_OBSERVED = "observed"  # the verb for any state of a broker in mode observe
_MOST_SUMMARY_LINES = 5
_PROMPT_LINES = 1
_HEADING_LINES = 2  # an empty line and the table's heading
KEYS = (
    ("q", "quit"),
    ("s", "sort"),
    ("f", "only volumes over a limit"),
    ("space", "freeze"),
    ("arrows, PgUp, PgDn", "scroll"),
    ("?", "keys"),
)


@dataclass(frozen=True, slots=True)
class Looks:
    """A user's choice of view; ``offset`` is the first row shown, ``frozen`` whether it stands still."""

    order: Order = Order.BROKER
    troubled_only: bool = False
    offset: int = 0
    show_keys: bool = False
    frozen: bool = False


def status_view(
    document: Mapping[str, Any], columns: int, *, ascii_only: bool = False, looks: Looks | None = None
) -> RenderableType:
    """Lay the document out for a terminal of this many columns, all rows of it."""
    looks = looks or Looks()
    columns = max(columns, MIN_COLUMNS)
    rows = status_rows(document, looks.order, troubled_only=looks.troubled_only)
    return Group(
        *_head(document),
        Text(),
        _table(document, rows, rows, columns, ascii_only=ascii_only),
        *_foot(document),
    )


def first_view(
    document: Mapping[str, Any], console: Console, looks: Looks, *, ascii_only: bool = False
) -> RenderableType:
    """Lay out what matters most, on one screen or for a fixed number of brokers, and count the rest.

    A cluster of a few brokers is shown whole.
    """
    columns = max(console.width, MIN_COLUMNS)
    if len(document["brokers"]) <= FEW_BROKERS:
        return status_view(document, columns, ascii_only=ascii_only, looks=looks)
    head, foot = (_lines(part(document), console, columns) for part in (_head, _foot))
    room = console.height - len(head) - len(foot) - _HEADING_LINES - _PROMPT_LINES
    rows = status_rows(document, looks.order, troubled_only=looks.troubled_only)
    for summary_lines in range(1, _MOST_SUMMARY_LINES + 1):
        lines = max(room - summary_lines, _FEWEST_ROWS) if console.is_terminal else None
        shown, sentences = _first(document, rows, looks, lines)
        summary = _lines([Text(line, style="dim") for line in sentences], console, columns - 2)
        if len(summary) <= summary_lines:
            break
    table = _table(document, rows, shown, columns, ascii_only=ascii_only)
    return Group(*head, Text(), table, *(Text("  ") + line for line in summary), *foot)


def _first(
    document: Mapping[str, Any], rows: Sequence[Row], looks: Looks, lines: int | None
) -> tuple[list[Row], list[str]]:
    """Return the rows to show of all, and sentences about the others."""
    if looks == Looks() and (lines is None or len(rows) > lines):
        shown, rest = first_rows(document, rows, _to_apply(document), lines)
    else:
        shown = first_of(rows, lines)
        rest = [line.plain.strip() for line in _more(0, len(shown), rows)]
    if len(shown) < len(rows):
        rest[-1] += "; --all shows all lines"
    return shown, rest


def watch_view(
    document: Mapping[str, Any], console: Console, looks: Looks, *, ascii_only: bool = False
) -> tuple[RenderableType, int]:
    """Lay it out to fill the screen; return it, and the greatest offset that makes sense.

    Where lines are few, the foot goes first, then the end of the head.
    """
    columns, lines = max(console.width, MIN_COLUMNS), console.height
    rows = status_rows(document, looks.order, troubled_only=looks.troubled_only)
    head = [_title(document, looks, columns), *_lines(_head(document), console, columns)]
    foot = _lines(_keys() if looks.show_keys else _foot(document), console, columns)
    if lines - len(head) - len(foot) - _HEADING_LINES < min(len(rows), _FEWEST_ROWS):
        foot = foot[:2] if looks.show_keys else []
    head = head[: max(lines - len(foot) - _HEADING_LINES - _FEWEST_ROWS, 2)]
    room = lines - len(head) - len(foot) - _HEADING_LINES
    if len(rows) > room:
        room -= 1  # for the line that reports it
    last = max(len(rows) - max(room, 1), 0)
    offset = min(looks.offset, last)
    shown = rows[offset : offset + max(room, 1)]
    table = _table(document, rows, shown, columns, ascii_only=ascii_only)
    return Group(*head, Text(), table, *_more(offset, len(shown), rows), *foot), last


def _lines(texts: Sequence[Text], console: Console, columns: int) -> list[Text]:
    return [line for text in texts for line in text.wrap(console, columns)]


def _table(
    document: Mapping[str, Any],
    rows: Sequence[Row],
    shown: Sequence[Row],
    columns: int,
    *,
    ascii_only: bool,
) -> RenderableType:
    if not rows:
        return Text("  no volume is over a limit", style="dim")
    decided = _to_apply(document)
    return status_table(shown, longest_name(rows), columns, decided=decided, ascii_only=ascii_only)


def _to_apply(document: Mapping[str, Any]) -> str | None:
    """Return the state that brokers have to apply; None where it is only observed."""
    return None if _only_observed(document) else str(document["state"])


def _title(document: Mapping[str, Any], looks: Looks, columns: int) -> Text:
    volumes = sum(len(broker["volumes"]) for broker in document["brokers"])
    left = f"kquota  {_count(len(document['brokers']), 'broker')}, {_count(volumes, 'volume')}"
    order = "" if looks.order is Order.BROKER else f"{looks.order.value}  "
    chosen = ("over a limit  " if looks.troubled_only else "") + order
    at = str(document["at"])[11:19]
    right = f"{chosen}{'frozen at ' if looks.frozen else ''}{at} UTC  ?"
    gap = max(columns - len(left) - len(right), 2)
    text = Text.assemble((left, "bold"), " " * gap, (right, "bold" if looks.frozen else "dim"))
    text.truncate(columns)
    return text


def _head(document: Mapping[str, Any]) -> list[Text]:
    state, sentence = document["state"], str(document["sentence"])
    lines = [Text.assemble((state, STATE_STYLES[state]), sentence.removeprefix(state))]
    if state != "OPEN":
        lines.append(Text(str(document["what_ends_it"])))
    lines.append(_applied_line(document))
    lines.append(_signing_line(document))
    lines += _orders(document)
    lines += [Text(printed(warning), style="bold red") for warning in document["warnings"]]
    wide = _held_by_the_cluster(document)
    if wide is not None:
        lines.append(wide)
    if document.get("broken_glass"):
        lines.append(Text(str(document["broken_glass"]), style="bold red"))
    if document.get("disagreement"):
        lines.append(Text(str(document["disagreement"]), style="yellow"))
    lines += [Text(str(problem), style="red") for problem in document.get("problems", ())]
    return lines


def _applied_line(document: Mapping[str, Any]) -> Text:
    """Return the brokers that apply the decision, and those that apply something else."""
    decided, factor = str(document["state"]), document["factor"]
    if _only_observed(document):
        return Text.assemble(
            "decided ",
            (state_text(decided, factor), STATE_STYLES[decided]),
            ("; only observed: the broker on this host holds no producer", "yellow"),
        )
    brokers = [broker for broker in document["brokers"] if broker["active"] is not False]
    applied = {broker["broker_id"]: _in_force(broker) for broker in brokers}
    counts = Counter(applied.values())
    text = Text.assemble(
        "decided ",
        (state_text(decided, factor), STATE_STYLES[decided]),
        f", applied by {counts[decided]} of {_count(len(brokers), 'broker')}",
    )
    for state in ("OPEN", "THROTTLE", "PAUSE"):
        if state != decided and counts[state]:
            text.append(f"; {state} at {_ids(applied, state)}", style="bold red")
    if counts[_OBSERVED]:
        text.append(f"; only observed at {_ids(applied, _OBSERVED)}", style="bold red")
    if counts[None]:
        text.append(f"; unverified at {_ids(applied, None)}", style="magenta")
    return text


def _signing_line(document: Mapping[str, Any]) -> Text:
    """Return whose last reports were not signed."""
    if document["signing"] == "off":
        return Text(SIGNING_OFF, style="yellow")
    brokers = [broker for broker in document["brokers"] if broker["active"] is not False]
    signed = {one["broker_id"]: None if one["signed"] is None else str(one["signed"]) for one in brokers}
    text = Text(f"signing: {document['signing']}")
    if "False" not in signed.values():
        return text.append(", every report is signed")
    return text.append(f"; not signed at {_ids(signed, 'False')}", style="yellow")


def _orders(document: Mapping[str, Any]) -> list[Text]:
    """Return the orders with author, reason and end; the sentence above has the hold."""
    orders = [order for order in document["orders"] if order["order"] != "hold"]
    lines = [
        Text(
            f"{_ordered(order)} until {order['until']}"
            f" by {order['actor'] or 'an unnamed user'} ({order['reason'] or 'no reason given'})",
            style="magenta",
        )
        for order in orders[:_MAX_ORDERS]
    ]
    if (more := len(orders) - _MAX_ORDERS) > 0:
        lines.append(Text(f"and {more} more order{'s' if more > 1 else ''}", style="magenta"))
    return lines


def _ordered(order: Mapping[str, Any]) -> str:
    if order["order"] == "relief":
        return f"relief plan {order['action']} is in force"
    return f"broker {order['broker_id']} is in {order['order']}"


def _held_by_the_cluster(document: Mapping[str, Any]) -> Text | None:
    """Return the brokers that hold every topic although each has a factor of its own; None without any."""
    if document["scope"] != "topics":
        return None
    brokers = [broker for broker in document["brokers"] if broker["active"] is not False]
    scopes = {broker["broker_id"]: (broker["applied"] or {}).get("Scope") for broker in brokers}
    wide = {broker_id: None if scope == "topics" else "cluster" for broker_id, scope in scopes.items()}
    if "cluster" not in wide.values():
        return None
    return Text(f"every topic is held at {_ids(wide, 'cluster')}: no fence is at work there", style="yellow")


def _in_force(broker: Mapping[str, Any]) -> str | None:
    return _OBSERVED if broker["mode"] == "observe" else applied_state(broker)[0]


def _only_observed(document: Mapping[str, Any]) -> bool:
    """Whether no broker is known to hold producers: if some broker does, the others are named."""
    enforced = any(broker["mode"] == "enforce" for broker in document["brokers"])
    return observes(document.get("local")) and not enforced and not document.get("broken_glass")


def observes(local: Mapping[str, Any] | None) -> bool:
    """Whether the broker on this host is known to hold no producer, whatever the decision.

    Its plug-in knows best. Without its report, the decision counts, as long as its lease runs: a broker
    that starts without a live agent holds producers by its own mode.
    """
    if local is None:
        return False
    decision, applied = local["decision"], local["applied"]
    if applied is not None:
        return bool(applied["mode"] == "observe")
    return decision is not None and decision["mode"] == "observe" and local["lease_seconds_left"] > 0


def _ids(applied: Mapping[int, str | None], state: str | None) -> str:
    ids = [str(broker_id) for broker_id, found in applied.items() if found == state]
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(ids[:5])}{more}"


def _foot(document: Mapping[str, Any]) -> list[Text]:
    notes = [Text(str(note), style="dim") for note in document.get("notes", ())]
    local = document.get("local") or {}
    lines = [line for line in (_clients(local), _topics(local)) if line is not None]
    if document.get("next_step"):
        notes.append(Text.assemble(("next: ", "bold"), str(document["next_step"])))
    return [Text(), *lines, *notes] if lines or notes else []


def _clients(local: Mapping[str, Any]) -> Text | None:
    """Return who produces most to the broker on this host."""
    clients = [client for client in local.get("clients") or () if client["produce_bytes_per_second"] >= 1]
    if not clients:
        return None
    text = Text.assemble((f"producers of broker {local['broker_id']}: ", "bold"))
    for index, client in enumerate(clients[:_MAX_CLIENTS]):
        held = f" (delayed by {client['throttle_ms']:.0f} ms)" if client["throttle_ms"] >= 1 else ""
        text.append(", " if index else "").append(str(client["name"]), style="cyan")
        text.append(f" {size_text(client['produce_bytes_per_second'])}B/s{held}")
    if len(clients) > _MAX_CLIENTS:
        text.append(f" and {len(clients) - _MAX_CLIENTS} more: kquota top", style="dim")
    return text


def _topics(local: Mapping[str, Any]) -> Text | None:
    """Return which topics grow most on the volumes of the broker on this host."""
    topics = local.get("growing_topics") or ()
    if not topics:
        return None
    text = Text.assemble((f"topics that grow on broker {local['broker_id']}: ", "bold"))
    for index, topic in enumerate(topics[:_MAX_TOPICS]):
        text.append(", " if index else "").append(str(topic["topic"]), style="cyan")
        text.append(f" {size_text(topic['bytes_per_second'])}B/s")
    return text


def _more(offset: int, shown: int, rows: Sequence[Row]) -> list[Text]:
    if shown == len(rows):
        return []
    return [Text(f"  {offset + 1} to {offset + shown} of {len(rows)} lines", style="dim")]


def _keys() -> list[Text]:
    text = Text()
    for key, what in KEYS:
        text.append("   " if text.plain else "").append(key, style="bold").append(f" {what}")
    return [Text(), text]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
