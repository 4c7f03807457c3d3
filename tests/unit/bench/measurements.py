"""Measurements as the bench might have taken them."""

from __future__ import annotations

from dataclasses import replace

from bench.figures import Case, Overshoot, Paused, Throttled, Throughput
from bench.loads import Client


def pause(system: str, **changes: object) -> Paused:
    usual = Paused(
        case=Case(system, Client.JAVA, 1),
        seconds=5,
        rate_before=20e6,
        landed_bytes=4_000_000,
        landed_late_bytes=3_000_000,
        landed_by_connection_bytes=(4_000_000,),
        landed_by_fifth_bytes=(4_000_000, 0, 0, 0, 0),
        resumed_seconds=(2.0,),
        watched_seconds=12,
        failed_records=0,
        errors=(),
    )
    return replace(usual, **changes)  # type: ignore[arg-type]


GOVERNOR = pause("governor")
FENCE = pause("fence", landed_bytes=1_000_000, landed_late_bytes=0, resumed_seconds=(0.8,))
PEER = pause("peer", landed_bytes=40_000_000, landed_late_bytes=30_000_000, resumed_seconds=(None,))
STEP = Throttled(Case("governor", Client.JAVA, 20), 1.0, 0.3, 20e6, 4.0, 1.0, 1.1)


def flat_out(system: str, *rates: float) -> Throughput:
    return Throughput(Case(system, Client.JAVA, 20), rates, tuple(1.0 for _ in rates))


BURST = Overshoot(
    zone_bytes=2**20,
    window_seconds=11,
    fence=False,
    reached=True,
    fill_rate=50e6,
    reaction_seconds=0.5,
    past_hard_bytes=100_000_000,
    pause_seconds=10.0,
    connections=4,
    request_bytes=1_000_000,
    leaders=2,
    share=1.0,
    mute_max_seconds=10.0,
    arrival_min_bytes=2**20,
    curve=((-1.0, -50_000_000), (0.0, 0), (10.0, 100_000_000)),
)
