"""A PAUSE in which a volume goes on growing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kquota.disks.observation import Failure
from kquota.guard.report import CycleReport
from kquota.retention.growth import PauseGrowth
from tests.unit.guard.cycles import CLUSTER, VERIFIED, Bench, applied_state, volume

GB = 10**9
STEP_SECONDS = 5.0


class Pause:
    """A PAUSE in which the broker's volume grows by the given amount."""

    def __init__(self, log_dir: Path, *, enforced: bool = True) -> None:
        self.bench = Bench(granted_for=CLUSTER if enforced else None)
        self.bench.settle()
        if enforced:
            self.bench.ports.plug_in = (applied_state(), VERIFIED)
        self.watch = PauseGrowth(1)
        self.log_dir = str(log_dir)
        self.consumed_bytes = 95 * GB
        self.failed = False

    def go_on(self, seconds: float, growth_bytes: int, free: int = 5) -> dict[str, str]:
        found: dict[str, str] = {}
        steps = round(seconds / STEP_SECONDS)
        for _ in range(steps):
            self.consumed_bytes += growth_bytes // steps
            self.bench.ports.volumes = (volume(free),)
            problems = list(self.watch.follow(self._seen(self.bench.run(after=STEP_SECONDS))))
            found = dict(zip(sorted(self.watch.growing), [one.sentence for one in problems], strict=True))
        return found

    def _seen(self, report: CycleReport) -> CycleReport:
        """The report as of a volume of 100 GB."""
        assert report.observation is not None
        large = replace(
            report.observation.volumes[0],
            capacity_bytes=100 * GB,
            consumed_bytes=self.consumed_bytes,
            log_dirs=(self.log_dir,),
            failures=(Failure(self.log_dir, "it hangs"),) if self.failed else (),
        )
        return replace(report, observation=replace(report.observation, volumes=(large,)))
