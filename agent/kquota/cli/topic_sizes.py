"""The last look at the segments of this host, as the agent wrote it: topics, and when their bytes leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from kquota.cli.output import fail
from kquota.display.figures import age_text, size_text
from kquota.host.safe_read import Refusal, read_json_object
from kquota.policy.timestamps import parse_utc
from kquota.retention.topic_sizes import FILE_NAME, IN_WORDS, leaving_sentence
from kquota.settings import Settings

_VOLUME_COLUMNS, _TOPIC_COLUMNS = 30, 20  # at most of a volume's name, and at least of a topic's
_PARTS = {
    "NeverBytes": "never leaves by itself",
    "WaitsForUploadBytes": "waits for its upload to remote storage",
    "StrayBytes": "is stray: of partitions that this broker does not have",
    "FutureBytes": "is of copies that moves between log dirs are filling",
    "DeletedBytes": "is of deleted topics and leaves within minutes",
    "UnknownBytes": "is of topics whose settings are not known",
}


def contents_document(settings: Settings) -> dict[str, Any]:
    """Return the segments file's document, or end with the reason why there is none."""
    found = _read(settings)
    if isinstance(found, str):
        fail(found)
    return found


def _read(settings: Settings) -> dict[str, Any] | str:
    """Return the document, or why there is none."""
    path = settings.decision_file.with_name(FILE_NAME)
    if not settings.segments.interval_seconds:
        return "segments.interval_seconds is 0: the agent does not look at segments"
    found = read_json_object(path, "segments file")
    if isinstance(found, Refusal):
        return f"{found.reason}; the agent writes it after its first look at the segments"
    return found


def show_topics(console: Console, document: Mapping[str, Any], count: int) -> None:
    """Print the largest topics of all volumes: bytes, growth since the look before, and what leaves soon."""
    rows = sorted(_topics(document), key=lambda row: -row[1]["Bytes"])
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold dim")
    figures = [_figures(document, topic) for _, topic in rows[:count]]
    # Figures are shown whole, and names are cut to fit: one long name takes no other column's room.
    columns = [["VOLUME", *(volume for volume, _ in rows[:count])]]
    columns += map(list, zip(("BYTES", "GROWTH", "LEAVES IN 1H"), *figures, strict=True))
    widths = [max(map(len, column)) for column in columns]
    widths[0] = min(widths[0], _VOLUME_COLUMNS)
    room = max(_TOPIC_COLUMNS, console.width - sum(widths) - 2 * len(widths))
    longest = max((len(topic["Topic"]) for _, topic in rows[:count]), default=0)
    table.add_column("TOPIC", overflow="ellipsis", no_wrap=True, width=min(room, max(longest, len("TOPIC"))))
    for (heading, *_), width in zip(columns, widths, strict=True):
        justify: JustifyMethod = "left" if heading == "VOLUME" else "right"
        table.add_column(heading, justify=justify, overflow="ellipsis", no_wrap=True, width=width)
    for (volume, topic), texts in zip(rows[:count], figures, strict=True):
        table.add_row(Text(topic["Topic"]), Text(volume), *texts)
    console.print(table)
    omitted = max(len(rows) - count, 0) + sum(
        volume["Others"]["Count"] for volume in document["Topics"]["Volumes"]
    )
    if omitted:
        console.print(f"and {omitted:,} more")
    _print_age(console, document)


def _figures(document: Mapping[str, Any], topic: Mapping[str, Any]) -> tuple[str, str, str]:
    growth, seconds = "-", document["Topics"].get("SpanSeconds")
    if topic.get("GrownBytes") is not None and seconds:
        growth = f"{size_text(topic['GrownBytes'] / float(seconds))}/s"
    return size_text(topic["Bytes"]), growth, size_text(topic["LeavingSoonBytes"])


def show_expiry(console: Console, document: Mapping[str, Any]) -> None:
    """Print for each volume when its bytes leave by themselves."""
    for volume in document["Expiry"]["Volumes"]:
        console.print(f"{volume['VolumeName']}: {', '.join(expiry_words(volume))}")
    _print_age(console, document)


def expiry_words(volume: Mapping[str, Any]) -> Iterator[str]:
    """Yield in words how much of a volume leaves until when, and what becomes of the rest."""
    for bucket, words in IN_WORDS.items():
        if size := volume["Leaving"][bucket]:
            yield f"{size_text(size)} leaves within {words}"
    if size := volume["Leaving"]["later"]:
        yield f"{size_text(size)} leaves later"
    for part, words in _PARTS.items():
        if size := volume.get(part):
            yield f"{size_text(size)} {words}"


def expiry_sentence(settings: Settings, volume_name: str, to_free_bytes: float) -> str | None:
    """Return how much of what is to be freed on a volume of this host leaves by itself.

    None without a look that is young enough to say so.
    """
    document = _read(settings)
    if isinstance(document, str) or _age_seconds(document) > 3 * settings.segments.interval_seconds:
        return None
    for volume in document["Expiry"]["Volumes"]:
        if volume["VolumeName"] == volume_name:
            sentence = leaving_sentence(to_free_bytes, volume["Leaving"], volume["DeletedBytes"])
            return f"Volume {volume_name}: {sentence}."
    return None


def _topics(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for volume in document["Topics"]["Volumes"]:
        for topic in volume["Topics"]:
            yield volume["VolumeName"], topic


def _age_seconds(document: Mapping[str, Any]) -> float:
    return (datetime.now(UTC) - parse_utc(document["At"])).total_seconds()


def _print_age(console: Console, document: Mapping[str, Any]) -> None:
    notes: Sequence[str] = document["Notes"]
    console.print(f"looked at {age_text(max(_age_seconds(document), 0.0))} ago")
    for note in notes:
        console.print(f"note: {note}", style="yellow")
