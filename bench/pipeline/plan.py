"""Which steps there are. Engines that are compared are measured one right after the other."""

from __future__ import annotations

from dataclasses import dataclass

from bench.pipeline.data import Fleet
from bench.pipeline.work import PARTS, REGRESSION, REPLAY, WORKS


@dataclass(frozen=True, slots=True)
class Lane:
    """One engine on so many cores, over so many days."""

    engine: str
    cores: int
    days: int
    works: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the step's name."""
        return f"{self.engine}-{self.cores}-cores-{self.days}-days"


@dataclass(frozen=True, slots=True)
class Profile:
    """A fleet, how many days all works run over, how many records are ingested and months foretold."""

    name: str
    fleet: Fleet
    days: int
    long_days: int | None
    ingest_records: int
    months: int
    """Of how many generated clusters a month is foretold."""

    @property
    def lanes(self) -> list[Lane]:
        """Return all lanes in their order."""
        shorter = (REPLAY, REGRESSION)
        lanes = [
            Lane("spark", 2, self.days, WORKS + PARTS),
            Lane("duckdb", 2, self.days, WORKS),
            Lane("spark", 1, self.days, shorter),
            Lane("spark", 2, 2 * self.days, shorter),
        ]
        if self.long_days is not None:
            lanes += [Lane(engine, 2, self.long_days, WORKS) for engine in ("spark", "duckdb")]
        return lanes


BASE = Profile("base", Fleet(), 3, None, 500_000, 6)
FULL = Profile("full", Fleet(), 3, 30, 500_000, 6)
# To see that the command works; its figures say little.
SMALL = Profile("small", Fleet(brokers=100), 2, None, 20_000, 1)
