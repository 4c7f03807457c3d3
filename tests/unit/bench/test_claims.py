"""What is claimed of the figures, and that a claim can fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.claims import judge, leak_bound_bytes, megabytes
from bench.loads import Client
from bench.results import Case, Paused, Results, Throttled, Throughput


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


def broken(*pauses: Paused, throughput: tuple[Throughput, ...] = ()) -> list[str]:
    verdicts = judge(Results(paused=pauses, throughput=throughput))
    return [verdict.statement for verdict in verdicts if verdict.asserted and not verdict.holds]


def test_all_claims_hold_where_they_should():
    assert (
        len([verdict for verdict in judge(Results(paused=(GOVERNOR, FENCE, PEER))) if verdict.asserted]) == 4
    )
    assert broken(GOVERNOR, FENCE, PEER) == []


@pytest.mark.parametrize(
    ("pauses", "statement"),
    [
        ((replace(FENCE, landed_late_bytes=10_000),), "with the fence nothing lands"),
        ((replace(GOVERNOR, landed_late_bytes=0),), "the governor alone leaks"),
        ((FENCE, replace(PEER, landed_bytes=900_000)), "less lands with the fence"),
        ((FENCE, replace(PEER, resumed_seconds=(0.5,))), "the slowest client is back sooner"),
        ((replace(FENCE, resumed_seconds=(None,)), PEER), "the slowest client is back sooner"),
    ],
)
def test_each_claim_can_fail(pauses: tuple[Paused, ...], statement: str):
    assert [text[: len(statement)] for text in broken(*pauses)] == [statement]


def test_a_peer_that_holds_nobody_has_nobody_to_bring_back():
    open_door = replace(PEER, landed_bytes=99_000_000, resumed_seconds=(0.1,))
    verdicts = judge(Results(paused=(FENCE, open_door)))
    assert not any("sooner" in verdict.statement for verdict in verdicts)
    assert broken(FENCE, open_door) == []


def test_a_peer_that_is_not_back_from_the_pause_before_is_not_compared():
    still_muted = replace(PEER, rate_before=0.0, landed_bytes=0, landed_late_bytes=0)
    assert still_muted.offered_ratio is None
    verdicts = judge(Results(paused=(FENCE, still_muted)))
    assert not any("peer" in verdict.statement for verdict in verdicts)


def test_pauses_of_different_cases_are_not_compared():
    elsewhere = replace(PEER, case=Case("peer", Client.JAVA, 20), landed_bytes=1)
    assert broken(FENCE, elsewhere) == []


def flat_out(system: str, *rates: float) -> Throughput:
    return Throughput(Case(system, Client.JAVA, 20), rates, tuple(1.0 for _ in rates))


def test_throughput_is_the_median_against_stock():
    stock = flat_out("stock", 100, 110, 10)
    assert broken(throughput=(stock, flat_out("governor", 90, 95, 500))) == []
    assert len(broken(throughput=(stock, flat_out("governor", 89, 10, 500)))) == 1
    aims = {
        verdict.statement: verdict.holds
        for verdict in judge(Results(throughput=(stock, flat_out("fence", 95, 95, 95))))
    }
    assert sorted(aims.values()) == [False, True]  # 0.95: above what is asserted, below what is aimed at


def test_an_aim_is_missed_plainly_and_names_the_worst():
    step = Throttled(Case("governor", Client.JAVA, 20), 1.0, 0.3, 20e6, 4.0, 3.0, 1.1)
    slow = replace(step, longest_silence_seconds=7.25, mean_ratio=0.5)
    verdicts = judge(Results(throttled=(step, slow)))
    assert [verdict.holds for verdict in verdicts] == [False, False]
    assert "1 of 2; worst 7.2 s where 5.1 was aimed at (governor, Java x 20)" in verdicts[0].measured
    assert "worst 0.50 (governor, Java x 20, 1→0.3)" in verdicts[1].measured
    assert not any(verdict.asserted for verdict in verdicts)
    assert all(verdict.cause for verdict in verdicts)


def test_the_bound_of_the_leak_grows_with_connections_and_with_the_logarithm_of_the_pause():
    one = leak_bound_bytes(GOVERNOR)
    assert one == pytest.approx(2**20 * (2 + 2 * 0.9162907) + 2**20)
    many = replace(GOVERNOR, case=Case("governor", Client.LIBRDKAFKA, 20))
    assert leak_bound_bytes(many) == pytest.approx(20e6 * (2 + 2 * 0.9162907) + 2**20)
    assert leak_bound_bytes(replace(GOVERNOR, seconds=30)) > one


def test_bytes_that_are_not_nothing_never_read_as_nothing():
    assert [megabytes(count) for count in (0, 10_000, 2_500_000)] == ["0.0 MB", "10 kB", "2.5 MB"]
