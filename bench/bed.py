"""The Kafka and the progress messages of benches that start clusters on volumes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from testbed.loopback.runtime import KafkaRuntime, ensure_kafka_runtime
from testbed.loopback.volumes import require_loop_volumes


@dataclass(frozen=True, slots=True)
class Bed:
    """Common to all measurements of such a bench."""

    runtime: KafkaRuntime
    report: Callable[[str], None]


def open_bed(report: Callable[[str], None]) -> AbstractContextManager[Bed]:
    """For `Bench.open`.

    Raises:
        VolumeUnavailable: no loop mounts can be made here.
        RuntimeUnavailable: Kafka can't be had.
    """
    require_loop_volumes()
    return nullcontext(Bed(ensure_kafka_runtime(report=report), report))


def versions(bed: Bed) -> Iterable[str]:
    """For `Bench.versions`."""
    return (f"Kafka {bed.runtime.version}",)
