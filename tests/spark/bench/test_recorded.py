"""The recorded fleet is what the pipeline reads of the sample, at another pace."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from pyspark.sql import SparkSession

from bench.pipeline.fleets import recorded
from bench.pipeline.recording.sample import SAMPLE, RecordedVolume, documents, read_sample


def test_a_volume_is_forecast_every_few_days_with_the_days_that_judge_it_in_the_record() -> None:
    volume = RecordedVolume("growth", "/a", (30.5,))
    days = [day for day, _ in recorded.cut_days(volume, 60)]
    assert days[0] == recorded.FIRST_CUT_DAY
    assert set(np.diff(days)) == {recorded.STEP_DAYS}
    assert 60 - recorded.AFTER_DAYS - recorded.STEP_DAYS < days[-1] <= 60 - recorded.AFTER_DAYS
    assert {family for _, family in recorded.cut_days(volume, 60)} == {"growth"}


def test_a_new_topic_is_judged_from_its_second_day_on_and_no_other_forecast_is_called_new() -> None:
    began = (30.4, 60.0, 76.9)
    found = dict(recorded.cut_days(RecordedVolume("other", "/a", began, began), 90))
    new = [day for day, family in found.items() if family == recorded.NEW_TOPIC]
    # The recording ends before the two weeks after the last one.
    assert new == [32, 33, 34, 61, 62, 63]
    for day in found.keys() - set(new):
        assert not any(0 < day - at < 1 + recorded.NEW_TOPIC_DAYS for at in began), day


@pytest.mark.long
def test_the_recorded_fleet_has_the_crests_and_looks_of_the_sample(spark: SparkSession) -> None:
    fleet = recorded.fleet(spark)
    about, records = read_sample(SAMPLE)
    assert {one.family for one in fleet} >= {volume.family for volume in about.volumes}
    assert len({one.name for one in fleet}) == len(fleet) >= 3 * len(about.volumes)
    usage = documents(records, "usage")
    for one in fleet[:: len(fleet) // 10]:
        log_dir = one.name.split(" at ")[0]
        hours: dict[int, int] = {}
        for record in usage:
            seconds = datetime.fromisoformat(record["At"]).timestamp() - about.began
            (consumed,) = [
                volume["Consumed"] for volume in record["Body"]["Volumes"] if volume["LogDirs"] == [log_dir]
            ]
            hour = 499_000 + int(seconds * about.scale // 3600)
            hours[hour] = max(hours.get(hour, 0), consumed)
        assert one.series.crest_bytes.tolist() == [float(hours[hour]) for hour in one.series.hours.tolist()]
        assert one.known.hours[-1] <= one.cut < one.series.hours[-1]
        assert np.isfinite(one.crests_to_come(recorded.AFTER_DAYS)).all()
        assert one.looks is not None
        total = one.looks.leaving_bytes.sum(axis=1) + one.looks.never_bytes
        assert np.abs(total - one.looks.topic_bytes.sum(axis=1)).max() <= 0.02 * one.series.capacity_bytes
        assert one.looks.leaving_bytes[:, 4:].sum() > 0, one.name
