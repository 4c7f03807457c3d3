"""The accounts of all clusters in one job: DataFrame → the account of docs/chargeback.md."""

from __future__ import annotations

from datetime import date

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from kquota_pipeline.accounting.attribution import CELL, FIGURES, Account, account_of_cluster, joined_account
from kquota_pipeline.accounting.days import by_topic

_ROWS = StructType(
    [StructField(name, StringType()) for name in CELL]
    + [StructField(name, DoubleType()) for name in (*FIGURES, "ratio")]
)


def accounted(holdings: DataFrame, writings: DataFrame, first: date, last: date) -> Account:
    """Return who held, wrote and read how much from `first` to `last`, of every cluster. Each is divided in a
    task of its own.

    Args:
        holdings: rows of the table, from attribution.BEFORE_DAYS before `first` on.
        writings: likewise.
    """

    def of_cluster(held: pd.DataFrame, wrote: pd.DataFrame) -> pd.DataFrame:
        return account_of_cluster(held, wrote, first, last)

    groups = by_topic(holdings, first, last).groupBy("cluster_id").cogroup(writings.groupBy("cluster_id"))
    return joined_account(groups.applyInPandas(of_cluster, _ROWS).toPandas())
