"""The agent's metrics, on a registry of their own, for Prometheus.

The present (state, volumes, undetermined brokers) is replaced as a whole and rendered from
that value: a scrape never sees half of a cycle, and removed parts leave no stale series. Counters and the
histogram are Prometheus's own; error counters exist from the start, at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from kquota.core.view import FoldResult
from kquota.daemon.present_metrics import (
    PRESENT_NAMES,
    AppliedSample,
    DecisionSample,
    Present,
    VolumeSample,
)
from kquota.kafka.errors import Kind, Operation

__all__ = ["AgentMetrics", "AppliedSample", "DecisionSample", "VolumeSample"]

# A cycle is some milliseconds; beyond the interval it is late, beyond the lease it is too late.
_CYCLE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class AgentMetrics:
    """All metrics of the agent for Prometheus; serve ``registry`` with :class:`MetricsServer`."""

    def __init__(self, version: str) -> None:
        """Create all metrics; counters start at zero."""
        # the library's default gives every counter a second series, which is not needed
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._present = Present(version)
        self.registry.register(self._present)
        self._publish_errors = self._counter(
            "kquota_publish_errors", "Usage records that could not be published.", "reason", Kind
        )
        self._history_dropped = self._counter(
            "kquota_history_dropped",
            "History records given up: too large, or no room for them while the cluster was away.",
        )
        self._kafka_errors = self._counter(
            "kquota_kafka_errors", "Errors of the agent's Kafka clients.", "kind", Kind
        )
        self._denied = self._counter(
            "kquota_denied",
            "Requests that Kafka denied, by what they lack.",
            "operation",
            Operation,
        )
        self._records = self._counter(
            "kquota_records",
            "Records read from the usage topic, by what became of them.",
            "result",
            FoldResult,
        )
        self._read_errors = self._counter("kquota_read_errors", "Failures to read the usage topic.")
        self._write_errors = self._counter(
            "kquota_decision_write_errors", "Decisions that could not be written to the decision file."
        )
        self._clock_jumps = self._counter("kquota_clock_jumps", "Jumps of the wall clock.")
        self._reload_failures = self._counter(
            "kquota_config_reload_failures", "Configurations that were refused, the last good one kept."
        )
        self._cycle_failures = self._counter("kquota_cycle_failures", "Cycles that ended in an error.")
        self._cycle_seconds = Histogram(
            "kquota_cycle_seconds", "Duration of a cycle.", buckets=_CYCLE_BUCKETS, registry=self.registry
        )

    def _counter(
        self, name: str, documentation: str, label: str | None = None, values: Iterable[str] = ()
    ) -> Counter:
        counter = Counter(name, documentation, [label] if label else [], registry=self.registry)
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

    def identified(self, broker_id: int, cluster_id: str | None) -> None:
        """This agent speaks for that broker."""
        self._present.identity = (str(broker_id), cluster_id or "")

    def observed(self, volumes: Iterable[VolumeSample]) -> None:
        """The volumes look like this now; volumes not named are gone."""
        self._present.volumes = tuple(volumes)

    def decided(self, decision: DecisionSample) -> None:
        """The policy decided this."""
        self._present.decision = decision

    def applied(self, applied: AppliedSample | None) -> None:
        """The broker's plug-in reports this; None: it reports nothing about the present."""
        self._present.applied = applied

    def connected(self, connected: bool) -> None:
        """The publisher has, or has not, a connection to the cluster."""
        self._present.connected = connected

    def certificate_expires(self, at_timestamp_seconds: float | None) -> None:
        """Our client certificate on disk is valid until that Unix time; None where there is none."""
        self._present.certificate_expiry_seconds = at_timestamp_seconds

    def running_last_good_config(self, running: bool) -> None:
        """The configuration in force is, or is not, an earlier one because the present one is bad."""
        self._present.last_good = running

    def rival_seen(self, seen: bool) -> None:
        """Another agent claims, or no longer claims, to be this broker's."""
        self._present.rival = seen

    def cycle_completed(self, seconds: float, at_timestamp_seconds: float) -> None:
        """A cycle took ``seconds`` and ended at that Unix time."""
        self._cycle_seconds.observe(seconds)
        self._present.last_cycle_seconds = at_timestamp_seconds

    def cycle_failed(self) -> None:
        """A cycle ended in an error."""
        self._cycle_failures.inc()

    def records_read(self, results: Mapping[str, int]) -> None:
        """This many records were read, by their fate (values of ``FoldResult``)."""
        for result, count in results.items():
            self._records.labels(str(result)).inc(count)

    def publish_failed(self, reason: str) -> None:
        """A usage record could not be published (a value of ``kquota.kafka.errors.Kind``)."""
        self._publish_errors.labels(str(reason)).inc()

    def history_dropped(self, count: int) -> None:
        """This many history records were given up."""
        self._history_dropped.inc(count)

    def kafka_failed(self, kind: str) -> None:
        """A Kafka client reported an error (a value of ``kquota.kafka.errors.Kind``)."""
        self._kafka_errors.labels(str(kind)).inc()

    def denied(self, operation: str) -> None:
        """Kafka denied a request for want of that permission (of ``kquota.kafka.errors.Operation``)."""
        self._denied.labels(str(operation)).inc()

    def read_failed(self) -> None:
        """The usage topic could not be read."""
        self._read_errors.inc()

    def decision_write_failed(self) -> None:
        """The decision file could not be written."""
        self._write_errors.inc()

    def clock_jumped(self) -> None:
        """The wall clock was set."""
        self._clock_jumps.inc()

    def config_reload_failed(self) -> None:
        """A configuration was refused and the last good one kept."""
        self._reload_failures.inc()
