"""Nothing flows into a topic that has ended: one that was deleted, or that of a job."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kquota_pipeline.forecast.history import DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.inflow import flow_of
from kquota_pipeline.forecast.physics import learned, leaving_to_come
from tests.spark.forecast.made_series import FIRST_HOUR, looks, retained

DAYS, CUT = 40, 30 * DAY_HOURS
CLOCK = np.arange(DAYS * DAY_HOURS)


def rate(seed: int, per_hour: float = 1.0) -> Floats:
    rhythm = 1 + 0.5 * np.sin(CLOCK / 24 * 2 * np.pi) - 0.3 * ((CLOCK // 24) % 7 >= 5)
    return np.asarray(per_hour * rhythm * np.random.default_rng(seed).lognormal(0, 0.1, len(CLOCK)))


def seen(topics: dict[str, tuple[Floats, int]]) -> Looks:
    """Return looks at topics of a rate and a retention in hours, which the looks have."""
    found = looks({name: retained(own, keep) for name, (own, keep) in topics.items()})
    kept = np.array([float(keep) for _, keep in topics.values()])
    return replace(found, topic_keep_hours=np.where(found.topic_bytes > 0, kept, 0.0))


def crests(whole: Looks) -> tuple[Floats, Floats]:
    """Return the crests of the days after the cut, of what leaves some day, as foretold and as they came."""
    part = whole.until(int(whole.hours[0]) + CUT - 1)
    learnt = learned(part)
    assert learnt is not None
    days = DAYS - CUT // DAY_HOURS
    said = leaving_to_come(learnt, part, CUT - 1, 30)[: days * DAY_HOURS]
    came = whole.leaving_bytes.sum(axis=1)[CUT:]
    return said.reshape(days, -1).max(axis=1), came.reshape(days, -1).max(axis=1)


@pytest.mark.parametrize("age_hours", [1, 30, 100])
def test_nothing_flows_into_a_topic_that_was_deleted(age_hours: int) -> None:
    whole = seen({"there": (rate(1), 72), "deleted": (rate(2, 2.0), 48)})
    after = CUT - age_hours
    gone = retained(rate(2, 2.0), 48)[1][after:]
    whole.leaving_bytes[after:] -= gone
    for of_topics in (whole.topic_bytes, whole.topic_soon_bytes, whole.topic_keep_hours):
        assert of_topics is not None
        of_topics[after:, 1] = 0.0
    said, came = crests(whole)
    assert said == pytest.approx(came, abs=0.06 * came.max())


@pytest.mark.parametrize("silent_hours", [6, 30, 60])
def test_a_job_that_has_ended_writes_no_more(silent_hours: int) -> None:
    job = np.zeros(len(CLOCK))
    job[CUT - silent_hours - 5 : CUT - silent_hours] = 40.0
    said, came = crests(seen({"there": (rate(1), 72), "job": (job, 168)}))
    assert said == pytest.approx(came, abs=0.06 * came.max())


@pytest.mark.parametrize("silent_hours", [50, 100])
def test_a_tenant_who_wrote_for_a_month_and_left_writes_no_more(silent_hours: int) -> None:
    tenant = rate(2, 2.0)
    tenant[CUT - silent_hours :] = 0.0
    said, came = crests(seen({"there": (rate(1), 72), "tenant": (tenant, 168)}))
    assert said == pytest.approx(came, abs=0.06 * came.max())


@pytest.mark.parametrize("keep_hours", [24, 168])
def test_a_topic_that_stands_still_for_a_day_and_a_half_has_not_ended(keep_hours: int) -> None:
    """A mirror that waits, or producers that are down: even if retention has emptied the topic meanwhile."""
    paused = rate(2)
    paused[CUT - 36 : CUT] = 0.0
    part = seen({"there": (rate(1), 72), "paused": (paused, keep_hours)}).until(FIRST_HOUR + CUT - 1)
    assert (part.topic_bytes[-1, 1] == 0) == (keep_hours == 24)
    assert flow_of(part).topics == (None,)
    assert not part.deleted().any()


@pytest.mark.parametrize("keep_hours", [24, 72, 168])
@pytest.mark.parametrize(("age_hours", "copy_hours"), [(1, 1), (8, 6), (48, 6), (90, 1)])
def test_a_replica_that_was_copied_here_takes_in_what_its_topic_does(
    keep_hours: int, age_hours: int, copy_hours: int
) -> None:
    """Its bytes came at once, and leave when they would have left elsewhere."""
    whole = seen({"there": (rate(1), 72), "copied": (rate(2, 2.0), keep_hours)})
    absent = 1 - np.clip((CLOCK - (CUT - age_hours) + 1) / copy_hours, 0.0, 1.0)
    whole.leaving_bytes[:] -= retained(rate(2, 2.0), keep_hours)[1] * absent[:, None]
    for of_topics in (whole.topic_bytes, whole.topic_soon_bytes):
        of_topics[:, 1] *= 1 - absent
    assert whole.topic_keep_hours is not None
    whole.topic_keep_hours[absent == 1, 1] = 0.0
    said, came = crests(whole)
    assert said == pytest.approx(came, abs=0.15 * came.max())
    flow = flow_of(whole.until(FIRST_HOUR + CUT - 1))
    assert flow.topics == (None, 1)
    assert not any(flow.is_new)


@pytest.mark.parametrize("age_hours", [3, 20])
def test_a_topic_that_enters_the_list_of_the_largest_ones_was_not_copied(age_hours: int) -> None:
    whole = seen({"there": (rate(1), 72), "named": (rate(2, 2.0), 168)})
    assert whole.topic_keep_hours is not None
    for of_topics in (whole.topic_bytes, whole.topic_soon_bytes, whole.topic_keep_hours):
        of_topics[: CUT - age_hours, 1] = 0.0
    said, came = crests(whole)
    assert said == pytest.approx(came, abs=0.06 * came.max())


def test_a_job_of_each_night_writes_again() -> None:
    job = np.where(CLOCK % 24 < 3, 20.0, 0.0)
    said, came = crests(seen({"there": (rate(1), 72), "job": (job, 168)}))
    assert said == pytest.approx(came, abs=0.06 * came.max())


def test_a_job_of_which_bytes_have_left_is_apart_from_the_others_and_not_new() -> None:
    job = np.zeros(len(CLOCK))
    job[CUT - 40 : CUT - 30] = 10.0
    flow = flow_of(seen({"there": (rate(1), 72), "job": (job, 34)}).until(FIRST_HOUR + CUT - 1))
    assert (flow.topics, flow.is_new) == ((None, 1), (False, False))
    assert flow.inflow_bytes[1] == pytest.approx(job[:CUT], abs=0.1)
