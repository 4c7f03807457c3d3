"""The measurements of each profile."""

from __future__ import annotations

from bench.harness.bench import Profile
from bench.plan import GROUPS, measurements


def test_every_measurement_has_a_name_of_its_own():
    names = [entry.name for entry in measurements(Profile.FULL)]
    assert len(set(names)) == len(names)


def test_the_usual_profile_is_part_of_the_full_one_and_touches_every_group():
    usual = measurements(Profile.USUAL)
    assert {entry.name for entry in usual} <= {entry.name for entry in measurements(Profile.FULL)}
    assert {entry.group for entry in usual} == set(GROUPS)


def test_the_full_profile_has_every_number_of_connections_rate_pause_and_delivery():
    names = {entry.name for entry in measurements(Profile.FULL)}
    for client in ("java", "librdkafka"):
        for connections in (1, 20, 100):
            assert f"throttle-{client}-{connections}-20-mb" in names
            assert f"ramp-{client}-{connections}-20-mb" in names
            for seconds in (5, 30, 120):
                assert f"pause-{client}-{connections}-{seconds}s" in names
        for rate in ("1-mb", "flat-out"):
            assert {f"throttle-{client}-20-{rate}", f"pause-{client}-20-{rate}-5s"} <= names
        for delivery in ("acks-0", "acks-1", "acks-all", "idempotent"):
            assert f"pause-{client}-20-{delivery}-5s" in names
    assert "pause-java-20-transactional-5s" in names
