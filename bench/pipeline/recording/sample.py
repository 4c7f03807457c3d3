"""A recording in a file: a line about it, and the records of the history topic as they came, compressed."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SAMPLE = Path(__file__).parents[1] / "fleets" / "samples" / "history.jsonl.xz"
KINDS = ("usage", "topics", "expiry")


@dataclass(frozen=True, slots=True)
class RecordedTopic:
    """A topic, and the settings of Kafka that it began with. `changed` are (day, retention.ms or None)."""

    name: str
    log_dir: str
    settings: dict[str, str]
    changed: tuple[tuple[float, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedVolume:
    """The volume of a log dir; at its `surprises`, days, something began that no history had shown, and at
    `new_days`, which are some of them, a topic.
    """

    family: str
    log_dir: str
    surprises: tuple[float, ...]
    new_days: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """How a history was recorded. A second stands for `scale` of the history, which begins at `began`.

    `kafka_cpu` and `other_cpu` are the cores that the brokers and all else used, in the mean.
    """

    kafka_version: str
    scale: float
    began: float
    seconds: float
    kafka_cpu: float
    other_cpu: float
    volumes: tuple[RecordedVolume, ...]
    topics: tuple[RecordedTopic, ...]


def write_sample(path: Path, recording: Recording, records: Iterable[bytes]) -> int:
    """Write a sample; return its bytes."""
    lines = [json.dumps(asdict(recording), separators=(",", ":")).encode(), *records]
    content = lzma.compress(b"\n".join(lines) + b"\n", preset=9 | lzma.PRESET_EXTREME)
    path.write_bytes(content)
    return len(content)


def read_sample(path: Path) -> tuple[Recording, list[bytes]]:
    """Read a sample: what was recorded, and the values of the records in their order.

    Raises:
        ValueError: the file is no sample of this version; the message names it.
    """
    try:
        first, *records = lzma.decompress(path.read_bytes()).splitlines()
        document = json.loads(first)
        document["volumes"] = tuple(
            RecordedVolume(**one | {name: tuple(one.get(name, ())) for name in ("surprises", "new_days")})
            for one in document["volumes"]
        )
        document["topics"] = tuple(
            RecordedTopic(one["name"], one["log_dir"], one["settings"], tuple(map(tuple, one["changed"])))
            for one in document["topics"]
        )
        return Recording(**document), records
    except (lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no sample of a recording: {error}; record it again") from None


def documents(records: Iterable[bytes], kind: str) -> list[dict[str, Any]]:
    """Return the records of a kind, parsed."""
    parsed = (json.loads(record) for record in records)
    return [document for document in parsed if document["Kind"] == kind]
