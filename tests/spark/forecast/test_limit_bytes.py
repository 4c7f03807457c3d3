"""The pipeline's columns say of each limit type what the agent's exact arithmetic says."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from kquota.policy.limits import MAX_BYTES, Limit, LimitType
from kquota_pipeline.forecast.series import limit_bytes

SEED = 20
LIMITS_OF_A_TYPE = 100
COLUMNS = "hard_limit_type string, hard_limit_level double, capacity_bytes long"


def test_columns_of_random_limits_agree_with_the_policy(spark):
    draw = random.Random(SEED)
    cases = [
        (
            limit_type.value,
            float(draw.choice((0, 100, draw.uniform(0, 100))))
            if limit_type.in_percent
            else float(draw.choice((0, draw.randrange(2**40), draw.randrange(MAX_BYTES)))),
            draw.randrange(1, MAX_BYTES),
        )
        for limit_type in LimitType
        for _ in range(LIMITS_OF_A_TYPE)
    ]
    rows = spark.createDataFrame(
        cases, "hard_limit_type string, hard_limit_level double, capacity_bytes long"
    )
    found = [row[0] for row in rows.select(limit_bytes("hard")).collect()]
    exact = [
        Limit.of(LimitType(name), Fraction(level)).consumed_at_bytes(capacity)
        for name, level, capacity in cases
    ]
    tolerances = [Fraction(max(capacity, level)) / 2**50 for _, level, capacity in cases]
    assert all(abs(Fraction(a) - b) <= c for a, b, c in zip(found, exact, tolerances, strict=True))


@pytest.mark.parametrize("name", ["LaterType", None])
def test_a_type_that_is_not_known_has_no_line(spark, name):
    row = spark.createDataFrame(
        [(name, 5.0, 100)], "hard_limit_type string, hard_limit_level double, capacity_bytes long"
    )
    assert row.select(limit_bytes("hard")).first()[0] is None
