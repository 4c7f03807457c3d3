"""The recorded fleet is what the pipeline reads of the sample, at another pace."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from pyspark.sql import SparkSession

from bench.pipeline.fleets import recorded
from bench.pipeline.recording.plan import VOLUMES
from bench.pipeline.recording.sample import SAMPLE, documents, read_sample


@pytest.mark.long
def test_the_recorded_fleet_has_the_crests_and_looks_of_the_sample(spark: SparkSession) -> None:
    fleet = recorded.fleet(spark)
    about, records = read_sample(SAMPLE)
    assert {one.family for one in fleet} == {volume.family for volume in VOLUMES}
    assert len({one.name for one in fleet}) == len(fleet) >= 3 * len(VOLUMES)
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
