"""The agent's metrics, on a registry of their own, for Prometheus.

The present (state, volumes, undetermined brokers) is replaced as a whole and rendered from
that value: a scrape never sees half of a cycle, and removed parts leave no stale series. Counters and the
histogram are Prometheus's own; error counters exist from the start, at zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from kquota.guard import agent_state
from kquota.guard.report import CycleReport
from kquota.kafka.errors import Kind, Operation
from kquota.policy.events import Refusal
from kquota.policy.view import FoldResult
from kquota.service.state_collector import PRESENT_NAMES, Figures, StateCollector

STATE_FILES = (agent_state.FILE_NAME,)
# A cycle is some milliseconds; beyond the interval it is late, beyond the lease it is too late.
_CYCLE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class AgentMetrics:
    """All metrics of the agent for Prometheus; serve ``registry`` with :class:`MetricsServer`.

    The parts of the agent count up the public counters.
    """

    def __init__(self, version: str) -> None:
        """Create all metrics; counters start at zero."""
        # the library's default gives every counter a second series, which is not needed
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._present = StateCollector(version)
        self.registry.register(self._present)
        self.publish_errors = self._counter(
            "publish_errors", "Usage records that could not be published.", "reason", Kind
        )
        self.history_dropped = self._counter(
            "history_dropped",
            "History records given up: too large, or no room for them while the cluster was away.",
        )
        self.kafka_errors = self._counter(
            "kafka_errors", "Errors of the agent's Kafka clients.", "kind", Kind
        )
        self.denied = self._counter(
            "denied", "Requests that Kafka denied, by what they lack.", "operation", Operation
        )
        self._records = self._counter(
            "records", "Records read from the usage topic, by what became of them.", "result", FoldResult
        )
        self._refused = self._counter(
            "records_refused", "Records that were refused for their signature, by cause.", "cause", Refusal
        )
        self.read_errors = self._counter("read_errors", "Failures to read the usage topic.")
        self._write_errors = self._counter(
            "decision_write_errors", "Decisions that could not be written to the decision file."
        )
        self.file_write_errors = self._counter(
            "file_write_errors", "Files of state_dir that could not be written.", "file", STATE_FILES
        )
        self.clock_jumps = self._counter("clock_jumps", "Jumps of the wall clock.")
        self.reload_failures = self._counter(
            "config_reload_failures", "Configurations that were refused, the last good one kept."
        )
        self.cycle_failures = self._counter("cycle_failures", "Cycles that ended in an error.")
        self._cycle_seconds = Histogram(
            "kquota_cycle_seconds", "Duration of a cycle.", buckets=_CYCLE_BUCKETS, registry=self.registry
        )

    def _counter(
        self, name: str, documentation: str, label: str | None = None, values: Iterable[str] = ()
    ) -> Counter:
        counter = Counter(f"kquota_{name}", documentation, [label] if label else [], registry=self.registry)
        for value in values:
            counter.labels(str(value))
        return counter

    def names(self) -> frozenset[str]:
        """Return the names of all series there can be, as alerts and dashboards use them.

        A histogram appears with its suffixes.
        """
        names = set(PRESENT_NAMES)
        for metric in self.registry.collect():
            names |= {sample.name for sample in metric.samples}
        return frozenset(names)

    def show(self, report: CycleReport, figures: Figures | None = None) -> None:
        """Show what a cycle saw and did, and what followed it."""
        self._present.shown = report, figures or Figures()
        for result, count in report.fold.results.items():
            self._records.labels(str(result)).inc(count)
        for cause, count in report.fold.refusals.items():
            self._refused.labels(cause).inc(count)
        if report.write_error is not None:
            self._write_errors.inc()

    def cycle_completed(self, seconds: float, at_timestamp_seconds: float) -> None:
        """Count a cycle that took ``seconds`` and ended at that Unix time."""
        self._cycle_seconds.observe(seconds)
        self._present.last_cycle_seconds = at_timestamp_seconds

    def configuration_taken(self, *, is_last_good: bool) -> None:
        """Show whether the last good configuration is in force because the present one was refused."""
        self.reload_failures.inc(is_last_good)
        self._present.last_good = is_last_good
