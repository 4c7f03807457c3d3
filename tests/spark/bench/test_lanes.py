"""A measurement knows whether its command did what is measured, by the words of the command."""

from __future__ import annotations

from bench.pipeline.commands import closed_one_day
from kquota_pipeline.maintain.derived import ALL_DERIVED
from kquota_pipeline.maintain.upkeep import Done


def test_a_day_is_closed_if_it_is_derived_in_every_table() -> None:
    days = {derived.table.name: 1 for derived in ALL_DERIVED}
    assert closed_one_day(Done(closed_days=6, derived_days=days).summary())
    for name in days:
        for other in (0, 13):
            assert not closed_one_day(Done(derived_days={**days, name: other}).summary())
