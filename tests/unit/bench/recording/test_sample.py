"""The sample of a real broker's history: whole, small, and deleted from as Kafka deletes."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bench.pipeline.recording.pace import HOUR_SECONDS, milliseconds
from bench.pipeline.recording.plan import MEBI
from bench.pipeline.recording.sample import (
    KINDS,
    SAMPLE,
    RecordedTopic,
    Recording,
    documents,
    read_sample,
    write_sample,
)

DAYS_NEEDED = 100
INDEXES = 0.1  # what segments take on a disk beyond their log: indexes, and blocks that are not full


@dataclass(frozen=True, slots=True)
class Course:
    """A topic at each look: hours since the recording began, bytes, and those that leave within an hour."""

    hours: np.ndarray
    sizes: np.ndarray
    soon: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        return np.diff(self.sizes)

    @property
    def is_slow(self) -> bool:
        """Whether it takes hours to fill a segment: otherwise falls hide much of what came."""
        rises = self.steps > 0
        return rises.any() and bool(np.median(self.steps[rises] / np.diff(self.hours)[rises]) < MEBI / 4)

    def came(self, hours: np.ndarray) -> np.ndarray:
        """Return the bytes that have come by these hours; between a deletion and its look as around it."""
        rises, lasted = self.steps >= 0, np.diff(self.hours)
        middles = self.hours[1:] - lasted / 2
        rates = np.interp(middles, middles[rises], (self.steps / lasted)[rises])
        summed = np.concatenate([[self.sizes[0]], self.sizes[0] + np.cumsum(rates * lasted)])
        return np.interp(hours, self.hours, summed)


@cache
def recording() -> tuple[Recording, list[bytes]]:
    return read_sample(SAMPLE)


@cache
def courses() -> dict[str, Course]:
    found: dict[str, list[tuple[float, int, int]]] = {}
    for record in documents(recording()[1], "topics"):
        hour = (datetime.fromisoformat(record["At"]).timestamp() - recording()[0].began) / HOUR_SECONDS
        for volume in record["Body"]["Volumes"]:
            for topic in volume["Topics"]:
                row = hour, topic["Bytes"], topic["LeavingSoonBytes"]
                found.setdefault(topic["Topic"], []).append(row)
    return {topic: Course(*np.array(rows, dtype=float).T) for topic, rows in found.items()}


def topics(policy: str = "delete", **wanted: bool) -> Iterator[tuple[RecordedTopic, Course]]:
    """Yield the topics of a policy that have, or have not, `time` and `size` as a bound."""
    for topic in recording()[0].topics:
        bounds = {
            "time": topic.settings["retention.ms"] != "-1",
            "size": topic.settings["retention.bytes"] != "-1",
        }
        fits = all(bounds[name] is wish for name, wish in wanted.items())
        if topic.settings["cleanup.policy"] == policy and fits and not topic.changed:
            yield topic, courses()[topic.name]


def hours_of(topic: RecordedTopic, setting: str) -> float:
    return int(topic.settings[setting]) / 1000 / HOUR_SECONDS


def test_a_sample_is_read_as_it_was_written(tmp_path: Path) -> None:
    about, records = recording()
    path = tmp_path / "sample.xz"
    assert write_sample(path, about, records[:5]) == path.stat().st_size
    assert read_sample(path) == (about, records[:5])


@pytest.mark.parametrize("content", [b"", b"text", lzma.compress(b"[]\n"), lzma.compress(b'{"scale": 1}\n')])
def test_a_file_that_is_no_sample_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sample.xz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"sample\.xz is no sample of a recording"):
        read_sample(path)


def test_the_sample_is_small_and_long_enough_to_judge_weeks_by() -> None:
    about, records = recording()
    assert SAMPLE.stat().st_size < 3_000_000
    assert about.seconds / HOUR_SECONDS / 24 > DAYS_NEEDED
    assert about.other_cpu < 0.5
    assert {json.loads(record)["Kind"] for record in records} == set(KINDS)
    for kind in KINDS:
        found = documents(records, kind)
        at = [datetime.fromisoformat(record["At"]).timestamp() for record in found]
        # Some hours lack a sample, and more lack a look: the agent rests for a second, an hour, after each.
        hours = {int((moment - about.began) / HOUR_SECONDS) for moment in at}
        assert len(hours) > (0.7 if kind == "usage" else 0.45) * about.seconds / HOUR_SECONDS, kind
        sequences = [record["Sequence"] for record in found]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences))), kind


def test_topics_kept_by_time_hold_what_came_within_their_retention() -> None:
    found = 0
    for topic, course in topics(time=True, size=False):
        keep = hours_of(topic, "retention.ms")
        segment = min(int(topic.settings["segment.bytes"]), np.inf)
        later = course.hours > course.hours[0] + keep + 24
        if segment > MEBI or later.sum() < 100 or not course.is_slow:
            continue
        at = course.hours[later]
        whole = course.came(at) - course.came(at - keep - 2) + 2.5 * segment
        least = course.came(at) - course.came(at - keep)
        assert (course.sizes[later] <= whole * (1.3 + INDEXES)).mean() > 0.97, topic.name
        assert (course.sizes[later] >= 0.8 * least - segment).mean() > 0.97, topic.name
        found += 1
    assert found >= 10


def test_deletions_are_of_whole_segments() -> None:
    """A saw: many small steps up, and now and then a step down by a segment, less what came meanwhile."""
    found = 0
    for topic, course in topics(time=True, size=False):
        if (
            int(topic.settings["segment.bytes"]) > MEBI
            or not (course.steps < 0).sum() > 10
            or not course.is_slow
        ):
            continue
        found += 1
        falls = -course.steps[course.steps < 0]
        assert (course.steps > 0).sum() > len(falls), topic.name
        assert np.median(falls) > 0.5 * MEBI, topic.name
        assert falls.max() < 6 * MEBI, topic.name
    assert found >= 5


def test_topics_kept_by_size_stay_within_a_segment_of_their_bound() -> None:
    found = list(topics(size=True))
    assert len(found) >= 2
    for topic, course in found:
        bound, segment = int(topic.settings["retention.bytes"]), int(topic.settings["segment.bytes"])
        assert course.sizes.max() < (bound + 2 * segment) * (1 + INDEXES), topic.name
    filled = [
        course
        for topic, course in found
        if course.sizes.max() > int(topic.settings["retention.bytes"]) - MEBI
    ]
    assert filled


def test_what_is_kept_forever_never_shrinks() -> None:
    ((topic, course),) = topics(time=False, size=False)
    assert course.steps.min() > -0.1 * MEBI, topic.name
    assert course.sizes[-1] > 5 * MEBI


def test_what_leaves_within_an_hour_was_foretold() -> None:
    for topic, course in topics(time=True, size=False):
        gone, steps = -np.minimum(course.steps, 0).sum(), np.diff(course.hours)
        foretold = (course.soon[:-1] * steps).sum()
        if gone > 20 * MEBI:
            # And some of it twice: a busy broker deletes an hour or more later.
            assert foretold > 0.7 * gone, topic.name
            calm = course.soon[:-1] < 0.01 * MEBI
            assert (course.steps[calm] > -0.1 * MEBI).mean() > 0.9, topic.name


def test_compacted_topics_shrink_although_little_of_them_is_foretold_to_leave() -> None:
    """The cleaner's renamed files alone are."""
    for _, course in topics("compact"):
        assert course.soon.sum() < 0.1 * course.sizes.sum()
        assert -course.steps.min() > MEBI
        assert course.sizes[len(course.sizes) // 2 :].max() < 90 * MEBI


def test_a_retention_that_was_shortened_freed_its_part_within_hours() -> None:
    changed = [topic for topic in recording()[0].topics if topic.changed]
    cuts = [topic for topic in changed if topic.changed[0][1] == milliseconds(72)]
    for topic in cuts:
        day = topic.changed[0][0]
        course = courses()[topic.name]
        before = course.sizes[np.searchsorted(course.hours, day * 24) - 2]
        after = course.sizes[np.searchsorted(course.hours, day * 24 + 4)]
        assert after < 0.65 * before, topic.name
    assert len(cuts) == 1
    assert replace(cuts[0], changed=()).settings["retention.ms"] == milliseconds(168)
