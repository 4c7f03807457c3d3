"""The worst case for a disk: replication alone fills it, flat out, through its soft and hard limit.

Three brokers with agents; the third leads nothing and follows everything. Its volume is watched while
producers are stopped, and for a while in PAUSE.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.figures import Overshoot
from bench.reaction import AppliedStates
from kquota.policy.decision import Scope, State
from kquota.policy.limits import Limit, LimitPair, LimitType
from testbed.demo.load_process import LoadProcess
from testbed.demo.loopback_stage import BROKER_IDS, LoopbackStage
from testbed.demo.plan import Application, Plan
from testbed.loopback import clients
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec

NO_ZONE_BYTES = 1 * MIB
HARD_BYTES = 512 * MIB
PAUSE_SECONDS = 12.0

_FULL_BROKER = 3
_LEADERS = 2
_VOLUME = VolumeSpec(4096 * MIB)  # sparse: it takes only the written space
_REQUEST_BYTES = 1_000_000  # librdkafka's message.max.bytes
_PRODUCERS = 2
# The plug-in's own defaults.
_MUTE_MAX_SECONDS = 10.0
_ARRIVAL_MIN_BYTES = 2**20
_LOOK_SECONDS = 0.02
_RATE_SECONDS = 1.0
_FILL_SECONDS = 120.0
_ZONE_SECONDS = 45.0
_CURVE_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class BurstPlan(Plan):
    """One volume for each broker, limits in bytes, and the quota window of choice."""

    scope: Scope = Scope.CLUSTER
    window_seconds: int = 11

    @property
    def broker_properties(self) -> dict[str, str]:
        """As in production, apart from the window where it is chosen."""
        return {"quota.window.num": str(self.window_seconds)}


def burst(
    runtime: KafkaRuntime,
    callback_jar: Path,
    *,
    zone_bytes: int,
    window_seconds: int,
    fence: bool,
    hard_bytes: int = HARD_BYTES,
    pause_seconds: float = PAUSE_SECONDS,
) -> Overshoot:
    """Fill the third broker's volume flat out, and watch how far it goes.

    Raises:
        TimeoutError: its soft limit was not reached in time.
        NotEnforced: not all brokers paused.
    """
    plan = BurstPlan(
        volumes=dict.fromkeys(BROKER_IDS, (_VOLUME,)),
        limits=LimitPair(
            soft=Limit.of(LimitType.CONSUMED_SPACE, hard_bytes - zone_bytes),
            hard=Limit.of(LimitType.CONSUMED_SPACE, hard_bytes),
        ),
        window_seconds=window_seconds,
        fence=fence,
    )
    with LoopbackStage(plan, runtime, callback_jar=callback_jar, report=lambda _line: None) as stage:
        states = AppliedStates(stage.files)
        states.wait_for(State.OPEN)
        admin = clients.admin_client(stage.cluster.client_configuration())
        application, *_ = plan.applications
        clients.create_topic(admin, application.topic, application.replicas, application.topic_settings)
        with VolumeWatch(stage.cluster.nodes[_FULL_BROKER].volumes[0]) as watch:
            loads = [_load(stage, application, number) for number in range(_PRODUCERS)]
            watch.wait_until_past(hard_bytes - zone_bytes, _FILL_SECONDS)
            try:
                breached_at = watch.wait_until_past(hard_bytes, _ZONE_SECONDS)
            except TimeoutError:  # slowed down so much in a large zone: then there is nothing to overshoot
                reached, breached_at, paused_at = False, time.monotonic(), time.monotonic()
            else:
                reached, paused_at = True, states.wait_for(State.PAUSE)
                time.sleep(max(0.0, breached_at + pause_seconds - time.monotonic()))
            for load in loads:
                load.process.kill()  # its queued records must not land now
        samples = watch.samples
    return Overshoot(
        zone_bytes=zone_bytes,
        window_seconds=window_seconds,
        fence=fence,
        reached=reached,
        fill_rate=fastest_fill(samples, paused_at),
        reaction_seconds=max(0.0, paused_at - breached_at),
        past_hard_bytes=max(consumed for _, consumed in samples) - hard_bytes,
        pause_seconds=pause_seconds,
        connections=_PRODUCERS * _LEADERS,
        request_bytes=_REQUEST_BYTES,
        leaders=_LEADERS,
        share=1.0,
        mute_max_seconds=_MUTE_MAX_SECONDS,
        arrival_min_bytes=_ARRIVAL_MIN_BYTES,
        curve=_thinned([(at - breached_at, consumed - hard_bytes) for at, consumed in samples]),
    )


class VolumeWatch:
    """A thread that reads what a volume holds; a context manager. Times: CLOCK_MONOTONIC, in seconds."""

    def __init__(self, volume: LoopVolume) -> None:
        self.samples: list[tuple[float, int]] = []
        self._volume = volume
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="volume watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def wait_until_past(self, level_bytes: int, timeout_seconds: float) -> float:
        """The moment of the first look that showed at least so much.

        Raises:
            TimeoutError: there was none in time.
        """
        deadline = time.monotonic() + timeout_seconds
        seen = 0
        while time.monotonic() < deadline:
            samples = self.samples[seen:]
            for at, consumed in samples:
                if consumed >= level_bytes:
                    return at
            seen += len(samples)
            time.sleep(_LOOK_SECONDS)
        raise TimeoutError(f"{self._volume.mount_point} did not reach {level_bytes} bytes")

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            self.samples.append((time.monotonic(), self._volume.consumed_bytes()))


def fastest_fill(samples: Sequence[tuple[float, int]], until: float) -> float:
    """The highest mean over a second before a moment, in bytes per second; 0 with less than a second."""
    times = [at for at, _ in samples]
    fastest = 0.0
    for at, consumed in samples[: bisect_left(times, until) + 1]:
        since = bisect_left(times, at - _RATE_SECONDS)
        if at - _RATE_SECONDS >= times[0]:
            fastest = max(fastest, (consumed - samples[since][1]) / (at - times[since]))
    return fastest


def _thinned(curve: Sequence[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    step = max(1, len(curve) // _CURVE_POINTS)
    return tuple((round(at, 3), past) for at, past in curve[::step])


def _load(stage: LoopbackStage, application: Application, number: int) -> LoadProcess:
    return LoadProcess(
        "produce",
        topic=application.topic,
        configuration=stage.cluster.client_configuration(),
        log_path=stage.cluster.path / f"producer-{number}.log",
        environment=stage.cluster.environment(),
        options=["--record-bytes", str(application.record_bytes), "-X", "enable.idempotence=true"],
    )
