"""What the tests of faults showed, saved as they end: a run that is interrupted loses one test."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Result:
    """Of one test with all its parameters; seconds are the longest of them, None where none measured any."""

    test: str
    """Its file and name: ``tests/unit/test_x.py::test_y``."""
    date: str
    passed: int
    failed: tuple[str, ...] = ()
    seconds: float = 0.0
    safe_seconds: float | None = None
    recovery_seconds: float | None = None

    def __add__(self, other: Result) -> Result:
        return Result(
            self.test,
            min(self.date, other.date),
            self.passed + other.passed,
            self.failed + other.failed,
            self.seconds + other.seconds,
            _longer(self.safe_seconds, other.safe_seconds),
            _longer(self.recovery_seconds, other.recovery_seconds),
        )


class Results:
    """A file with a line for each test; the last one of a test counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Mapping[str, Result]:
        """Return them by test."""
        found: dict[str, Result] = {}
        for line in self.path.read_text("utf-8").splitlines() if self.path.is_file() else ():
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # whoever wrote it was killed half-way
            found[entry["test"]] = Result(**{**entry, "failed": tuple(entry["failed"])})
        return found

    def add(self, result: Result) -> None:
        """Save one at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            # The line before may have been cut short.
            file.write(f"\n{json.dumps(asdict(result))}\n")

    def forget(self, tests: Collection[str]) -> None:
        """Drop those of these tests."""
        kept = [result for test, result in self.read().items() if test not in tests]
        self.path.unlink(missing_ok=True)
        for result in kept:
            self.add(result)


def _longer(one: float | None, other: float | None) -> float | None:
    both = [seconds for seconds in (one, other) if seconds is not None]
    return max(both, default=None)
