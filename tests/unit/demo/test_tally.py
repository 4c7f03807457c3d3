"""Bookkeeping of the demo over made-up sights."""

from __future__ import annotations

from kquota.guard.applied_state import AppliedState, Mechanism
from kquota.policy.decision import Mode, State
from testbed.demo.sight import BrokerSight, Sight, VolumeSight
from testbed.demo.tally import Tally

FACTORS = {State.OPEN: 1.0, State.THROTTLE: 0.5, State.PAUSE: 0.0}


def volume(consumed_bytes: int, name: str = "/dev/loop1") -> VolumeSight:
    headroom = min(1.0, max(0.0, (90 - consumed_bytes) / 20))
    return VolumeSight(name, 100, consumed_bytes, soft_bytes=70, hard_bytes=90, headroom=headroom)


def applied(state: State, mode: Mode = Mode.ENFORCE) -> AppliedState:
    held = mode is Mode.ENFORCE and state is not State.OPEN
    return AppliedState(
        schema_version=1,
        plugin_version="1",
        decision_schema_versions=(1,),
        boot_id="boot",
        written_uptime_ms=1,
        started_uptime_ms=0,
        cluster_id="c",
        broker_id=1,
        sequence=1,
        lost=None,
        mode=mode,
        broker_mode=Mode.ENFORCE,
        state=state,
        factor=FACTORS[state],
        mechanism=Mechanism.GOVERNOR if held else Mechanism.NONE,
        exempt=(),
        offline_log_dirs=(),
        errors={},
    )


def sight(at: float, consumed_bytes: int, *states: State, running: bool = True) -> Sight:
    brokers = [
        BrokerSight(number, running, (volume(consumed_bytes),), None, applied(state))
        for number, state in enumerate(states, start=1)
    ]
    return Sight(at, tuple(brokers))


def test_moments_and_peaks_of_a_whole_play() -> None:
    tally = Tally()
    for step in (
        sight(1.0, 10, State.PAUSE, State.PAUSE),
        sight(2.0, 10, State.OPEN, State.OPEN),
    ):
        tally.notice(step)
    tally.begin()
    for step in (
        sight(3.0, 75, State.THROTTLE, State.OPEN),
        sight(4.0, 80, State.THROTTLE, State.THROTTLE),
        sight(5.0, 91, State.THROTTLE, State.THROTTLE),
        sight(5.5, 93, State.PAUSE, State.THROTTLE),
        sight(6.0, 94, State.PAUSE, State.PAUSE),
        sight(7.0, 80, State.PAUSE, State.PAUSE),
        sight(8.0, 70, State.PAUSE, State.PAUSE),
        sight(8.5, 20, State.OPEN, State.PAUSE),
        sight(9.0, 20, State.OPEN, State.OPEN),
    ):
        tally.notice(step)

    assert tally.states == [State.OPEN, State.THROTTLE, State.PAUSE, State.OPEN]
    assert tally.reaction_seconds == 1.0
    assert tally.release_seconds == 1.0
    peak = tally.peaks[(2, "/dev/loop1")]
    assert (peak.consumed_bytes, peak.past_hard_bytes, peak.free_bytes) == (94, 4, 6)
    assert tally.died_at == {}


def test_one_broker_that_does_not_hold_is_no_pause() -> None:
    tally = Tally()

    tally.notice(sight(1.0, 95, State.PAUSE, State.THROTTLE))

    assert tally.breached_at == 1.0
    assert tally.reaction_seconds is None
    assert tally.states == []


def test_a_broker_that_only_observes_holds_nobody() -> None:
    broker = BrokerSight(1, True, (volume(95),), None, applied(State.PAUSE, Mode.OBSERVE))

    assert not Sight(1.0, (broker,)).all_enforce(State.PAUSE)


def test_the_first_moment_a_broker_was_found_dead_counts() -> None:
    tally = Tally()
    tally.notice(sight(1.0, 50, State.OPEN))
    tally.notice(sight(2.0, 50, State.OPEN, running=False))
    tally.notice(sight(3.0, 50, State.OPEN, running=False))

    assert tally.died_at == {1: 2.0}
