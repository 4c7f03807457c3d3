"""Numbers in place of the texts that describe a volume, in the samples of closed days.

Spark groups by a number in a fraction of the time that it needs to hash five texts. A closed day is sorted by
volume and time, so samples with the same description follow each other. Each such run has a number, and its
first row is marked: these rows have the descriptions of all numbers. A number is the place of that row in its
day and not a hash of the texts, so no two descriptions share one.
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

NUMBER, FIRST = "volume_number", "first_of_number"
DESCRIPTION = (
    *("cluster_id", "broker_id", "volume_name", "volume_id", "mount_point", "status", "role"),
    *("hard_limit_type", "hard_limit_level", "soft_limit_type", "soft_limit_level"),
)
"""A number stands for these. Samples whose description changes each time have a number each."""
# A row's place in a day is its part, and its place in that, in 33 bits.
_DAY_BITS = 44
MOST_PARTS = 1 << (_DAY_BITS - 33)
"""A day has this many files at most."""


def numbered(rows: DataFrame, in_turn: WindowSpec) -> DataFrame:
    """Return the rows with their numbers; `in_turn`, rows of a volume follow each other."""
    same = [F.col(name).eqNullSafe(F.lag(name).over(in_turn)) for name in DESCRIPTION]
    day = F.shiftleft(F.unix_date("day").cast("long"), _DAY_BITS)
    # The first row of a window has none before it.
    marked = rows.withColumn("_place", day + F.monotonically_increasing_id()).withColumn(
        FIRST, ~reduce(and_, same, F.row_number().over(in_turn) > 1)
    )
    up_to_it = in_turn.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    number = F.last(F.when(F.col(FIRST), F.col("_place")), ignorenulls=True).over(up_to_it)
    return marked.withColumn(NUMBER, number).drop("_place")


def votes() -> Column:
    """Return whether a sample's volume votes: it is of data, and was read."""
    return (F.col("role") == "data") & (F.col("status") == "ok")


def unnumbered(rows: DataFrame) -> DataFrame:
    """Return the rows without numbers, where some rows of a day may have gone."""
    nothing = {name: F.lit(None).cast(rows.schema[name].dataType) for name in (NUMBER, FIRST)}
    return rows.withColumns(nothing)


def with_number(usage: DataFrame) -> DataFrame:
    """Return the samples that have a number: their descriptions are in `descriptions`."""
    return usage.where(F.col(NUMBER).isNotNull())


def without_number(usage: DataFrame) -> DataFrame:
    """Return the other samples: of open days, those that came late, and those of an earlier kquota."""
    return usage.where(F.col(NUMBER).isNull())


def descriptions(usage: DataFrame) -> DataFrame:
    """Return the description of each number: its columns, and those of DESCRIPTION."""
    return usage.where(F.col(FIRST)).select(NUMBER, *DESCRIPTION)


def no_description() -> Column:
    """Fail the query: for numbers without one, so that no sample is lost in silence."""
    return F.raise_error(
        F.lit("samples with a number are of whole days, and the first one of theirs is missing")
    )


def described(numbers: DataFrame, usage: DataFrame, chosen: Column) -> DataFrame:
    """Return rows with numbers of the samples `usage`, and the columns of their descriptions, as far as these
    are `chosen`.

    A number without a description fails the query: `usage` are then samples of a part of a day.
    """
    known = F.coalesce("cluster_id", no_description().cast("string"))
    found = numbers.join(descriptions(usage), NUMBER, "left")
    return found.where(chosen | F.col("cluster_id").isNull()).withColumn("cluster_id", known)
