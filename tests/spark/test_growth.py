"""Growth is known where both ends are: otherwise the account has none, instead of all or nothing."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from kquota_pipeline.accounting.attribution import fillers, or_none, owners
from kquota_pipeline.accounting.job import accounted as accounted_by_spark
from kquota_pipeline.report.figures import known
from kquota_pipeline.tables import HOLDINGS, WRITINGS
from tests.spark.rows import rows
from tests.spark.test_attribution import DAYS, FIRST, accounted, holding, writing


def test_growth_is_not_known_without_both_ends_and_a_sum_with_it_neither() -> None:
    unknown = {"has_held": True, "has_growth": False}
    found = accounted(
        [
            holding("orders", 100.0, DAYS[-1], 9.0, **unknown),
            holding("logs", 40.0, DAYS[0], 9.0, has_held=False, has_growth=False),
            *[holding("clicks", 5.0 + number, day, 9.0) for number, day in enumerate(DAYS)],
        ],
        [writing("CN=a", topic, 9.0) for topic in ("orders", "logs")] + [writing("CN=b", "clicks", 9.0)],
        last=DAYS[-1],
    )
    by_topic_ = owners(found.rows, ["topic"]).set_index("topic")
    assert by_topic_.loc["orders", "held_bytes"] == 100
    assert np.isnan(by_topic_.loc["orders", "growth_bytes"])
    assert np.isnan(by_topic_.loc["logs", ["held_bytes", "growth_bytes"]].tolist()).all()
    assert by_topic_.loc["logs", "byte_days"] == 40
    assert by_topic_.loc["clicks", "growth_bytes"] == pytest.approx(2)
    by_user = owners(found.rows, ["user"]).set_index("user")
    assert np.isnan(by_user.loc["CN=a", ["held_bytes", "growth_bytes"]].tolist()).all()
    assert by_user.loc["CN=b", "growth_bytes"] == pytest.approx(2)


def test_growth_of_principals_is_not_known_where_clients_were_recorded_later() -> None:
    held = [holding(topic, 100.0, day, 9.0) for topic in ("orders", "logs") for day in DAYS]
    later = accounted(held, [writing("CN=a", "orders", 9.0, DAYS[1])], last=DAYS[-1])
    growth = owners(later.rows, ["user", "topic"]).set_index(["user", "topic"])["growth_bytes"]
    assert np.isnan(growth["CN=a", "orders"])
    before = FIRST - timedelta(days=3)
    earlier = accounted(held, [writing("CN=a", "orders", 9.0, day) for day in (before, *DAYS)], last=DAYS[-1])
    growth = owners(earlier.rows, ["user"]).set_index("user")["growth_bytes"]
    assert growth["CN=a"] == pytest.approx(0, abs=1e-3)


def test_a_figure_that_is_not_known_is_none_in_json_and_a_word_for_people() -> None:
    assert (or_none(float("nan")), or_none(np.float64(2))) == (None, 2.0)
    assert [known(value) for value in (None, float("nan"), 0.0)] == [
        "not known",
        "not known",
        "0\N{NO-BREAK SPACE}B",
    ]


def test_what_a_volume_had_before_is_not_known_without_samples_and_looks_of_that_day() -> None:
    shares = pd.DataFrame({"user": ["CN=a"], "topic": ["logs"], "ratio": [1.0]})
    found = fillers(None, {"logs": 3e9}, shares)
    assert (found["has_grown"], found["bytes"]) == (None, 3e9)
    assert found["parts"][0] == {"user": "CN=a", "topic": "logs", "bytes": 3e9}


def test_a_topic_has_growth_where_each_of_its_volumes_says_so_at_both_ends(spark: SparkSession) -> None:
    def row(volume: str, topic: str | None, *days: int) -> list[dict[str, object]]:
        place = {"cluster_id": "C", "broker_id": 1, "volume_name": volume, "topic": topic}
        return [
            {**place, "day": DAYS[day], "byte_days": 1.0, "hours": 24, "inflow_bytes": 0.0} for day in days
        ]

    given = [
        *row("/a", "x", 0, 2), *row("/a", "y", 0, 1, 2), *row("/a", None, 0, 1, 2),
        # Its agent looks from the second day on, and so it has x from then on.
        *row("/b", None, 0, 1, 2), *row("/b", "x", 1, 2),
        # It is gone on the last day, with z.
        *row("/c", "z", 0, 1), *row("/a", "new", 2),
    ]  # fmt: skip
    holdings = rows(spark, HOLDINGS, given)
    nothing = spark.createDataFrame([], WRITINGS.schema)
    found = accounted_by_spark(holdings, nothing, FIRST, DAYS[-1])
    own = found.rows.set_index("topic")[["held_bytes", "growth_bytes"]]
    assert own.loc[["x", "y", "new"], "held_bytes"].tolist() == [2, 1, 1]
    assert own.loc[["y", "new"], "growth_bytes"].tolist() == [0, 1]
    assert np.isnan(own.loc[["x", "z"], "growth_bytes"]).all()
    assert np.isnan(own.loc["z", "held_bytes"])
    # /b counted x as none before.
    assert np.isnan(found.rows.loc[found.rows["topic"].isna(), "growth_bytes"]).all()
