"""The history that an analysis reads: the tables of it, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kquota_pipeline.accounting.days import holdings_of, writing_rows
from kquota_pipeline.backtest.ten_minutes import STEP_SECONDS, ten_minute_rows
from kquota_pipeline.forecast.looks import hourly_looks
from kquota_pipeline.forecast.series import hourly
from kquota_pipeline.tables import TOPICS


@dataclass(frozen=True, slots=True)
class History:
    """Tables by their names. `topics` and `expiry` are None where agents have not looked at segments; `hours`
    (forecast.series.hourly), `looks` (forecast.looks.hourly_looks), `ten_minutes`, `holdings` and `writings`
    where they have to be made of the others; `steps` (the samples that ten minutes are simulated by) where
    it takes all of them; `rates` (accounting.topics.TOPIC_RATES) where no operator has them.
    """

    usage: DataFrame
    decisions: DataFrame
    clients: DataFrame
    operators: DataFrame
    topics: DataFrame | None = None
    expiry: DataFrame | None = None
    hours: DataFrame | None = None
    holdings: DataFrame | None = None
    writings: DataFrame | None = None
    rates: DataFrame | None = None
    ten_minutes: DataFrame | None = None
    steps: DataFrame | None = None
    looks: DataFrame | None = None

    @property
    def by_hour(self) -> DataFrame:
        """The hours of each volume."""
        return hourly(self.usage) if self.hours is None else self.hours

    @property
    def seen(self) -> DataFrame | None:
        """The last look at each volume in each hour; None where agents have not looked."""
        if self.looks is None and self.topics is not None and self.expiry is not None:
            return hourly_looks(self.expiry, self.topics)
        return self.looks

    @property
    def by_ten_minutes(self) -> DataFrame:
        """The rows of table `ten_minutes`."""
        return ten_minute_rows(self.usage) if self.ten_minutes is None else self.ten_minutes

    def sampled(self, tick_seconds: int) -> DataFrame:
        """Return the samples that a closed loop reads: `steps` where a step is ten minutes or a multiple,
        otherwise all.
        """
        return self.usage if self.steps is None or tick_seconds % STEP_SECONDS else self.steps

    @property
    def held(self) -> DataFrame:
        """The rows of table `holdings`."""
        if self.holdings is not None:
            return self.holdings
        nothing = self.usage.sparkSession.createDataFrame([], TOPICS.schema)
        return holdings_of(self.by_hour, nothing if self.topics is None else self.topics)

    @property
    def written(self) -> DataFrame:
        """The rows of table `writings`."""
        return writing_rows(self.clients) if self.writings is None else self.writings

    def of_cluster(self, cluster_id: str) -> History:
        """Return the history of one cluster."""
        own = F.col("cluster_id") == cluster_id
        frames = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self, **{name: frame.where(own) for name, frame in frames.items() if frame is not None}
        )
