"""A forecast in words."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row

from kquota_pipeline.forecast.probabilities import WITHIN_DAYS
from kquota_pipeline.report.chances import advice, chances, who
from kquota_pipeline.report.forecasts import title, usage
from kquota_pipeline.report.model import urgency


def row(*probabilities: float, outlook: str = "filling", **more: object) -> dict[str, Any]:
    return {
        "broker_id": 3, "soft_outlook": outlook, "hard_outlook": "not filling", "consumed_bytes": 800,
        "soft_bytes": 900.0,
        "leaving_1d_bytes": None, "crest_bytes": None, "fastest_topic": None,
        "fastest_topic_bytes_per_day": None,
        **{
            f"soft_within_{days}d": share
            for days, share in zip(WITHIN_DAYS, probabilities or (None,) * 6, strict=True)
        },
        **more,
    }  # fmt: skip


def words(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_two_probabilities_say_when_it_is_possible_and_when_almost_sure() -> None:
    assert words(chances(row(0, 0.02, 0.3, 0.6, 0.85, 0.97), "soft")) == (
        "30 % within 7 days, 85 % within 21 days"
    )
    assert words(chances(row(0.9, 1, 1, 1, 1, 1), "soft")) == "90 % within 1 day"
    assert words(chances(row(0, 0, 0.01, 0.05, 0.1, 0.12), "soft")) == "12 % within 30 days"
    assert words(chances(row(0, 0, 0, 0, 0, 0.004), "soft")) == "less than 1 % within 30 days"
    for unknown in ("too little history", "limit of an unknown type"):
        assert chances(row(outlook=unknown), "soft") == unknown
    assert chances(row(1, 1, 1, 1, 1, 1, outlook="over the limit"), "soft") == "over the limit"


def filled(*parts: tuple[str | None, str | None, float], has_grown: bool = True) -> dict[str, Any]:
    return {
        "has_grown": has_grown,
        "bytes": sum(size for _, _, size in parts),
        "parts": [{"user": user, "topic": topic, "bytes": size} for user, topic, size in parts],
    }


def test_who_fills_it_is_the_principal_or_at_least_the_topic_of_the_largest_part() -> None:
    found = who(filled(("CN=web", "clicks", 6e9), (None, "logs", 4e9)))
    assert tuple(map(words, found)) == ("CN=web: 60 %", "of 10 GB more in a week (topic clicks)")
    found = who(filled((None, "logs", 3e9), ("CN=web", "clicks", 1e9), has_grown=False))
    assert tuple(map(words, found)) == ("topic logs: 75 %", "of 4 GB on it; its writers are not known")
    assert who(filled((None, None, 3e9)))[0] == "not known"
    assert who(None)[0] == "not known"


def test_what_to_do_depends_on_how_soon_and_on_what_leaves_by_itself() -> None:
    below = [960.0, 890.0, 895.0, 950.0]
    over = {"outlook": "over the limit", "consumed_bytes": 950, "crest_bytes": below}
    assert "leave by themselves" in advice(row(1, 1, 1, 1, 1, 1, **over, leaving_1d_bytes=60.0))
    make_room = "Make room: kquota relief on broker 3"
    assert advice(row(1, 1, 1, 1, 1, 1, **over, leaving_1d_bytes=40.0)) == make_room
    # As much leaves as is over the limit, and at least as much flows in.
    for crests in ([960.0, 940.0, 890.0], [960.0, 890.0, 901.0], None):
        flows_in = {**over, "crest_bytes": crests, "leaving_1d_bytes": 60.0}
        assert advice(row(1, 1, 1, 1, 1, 1, **flows_in)) == make_room
    assert "this week" in advice(row(0, 0.3, 0.6, 0.8, 0.9, 1))
    assert "Plan room" in advice(row(0, 0, 0.1, 0.3, 0.5, 0.6))
    assert "again" in advice(row(0, 0, 0, 0, 0.1, 0.3, outlook="perhaps filling"))
    assert advice(row(0, 0, 0, 0, 0, 0, outlook="not filling")) == "Nothing"
    assert "history" in advice(row(outlook="too little history"))
    for limit in ("soft", "hard"):
        strange = {f"{limit}_outlook": "limit of an unknown type"}
        assert advice(row(0, 0, 0, 0, 0, 0) | strange).startswith("Upgrade")


def test_what_has_no_forecast_does_not_fill_first_and_comes_after_what_has_one() -> None:
    likely = row(0, 0, 0.1, 0.3, 0.5, 0.6, soft_days=20.0)
    unlikely = row(0, 0, 0, 0, 0, 0, outlook="not filling", soft_days=None)
    fuller = row(outlook="too little history", soft_days=None, consumed_bytes=890)
    over = row(1, 1, 1, 1, 1, 1, outlook="over the limit", soft_days=0.0)
    strange = row(
        0, 0, 0, 0, 0, 0, outlook="not filling", hard_outlook="limit of an unknown type", soft_days=None
    )
    volumes = [Row(capacity_bytes=1000, **one) for one in (fuller, unlikely, likely, strange, over)]
    assert [one.soft_outlook for one in sorted(volumes, key=urgency)] == [
        "over the limit", "not filling", "filling", "not filling", "too little history"
    ]  # fmt: skip
    assert [title(one) for one in (over, likely, unlikely, fuller)] == [
        "Fills first", "Fills first", "Most likely to fill", "Fullest, and no forecast yet"
    ]  # fmt: skip


def test_a_volume_without_bytes_and_with_unknown_limits_is_shown() -> None:
    strange = row(
        outlook="limit of an unknown type", volume_name="/a", mount_point="/a", hour=490_000,
        capacity_bytes=0,
        soft_bytes=None, hard_bytes=None, soft_days=None, hard_outlook="limit of an unknown type",
        basis="usage", crest_bytes=[0.0] * 30, low_bytes=[0.0] * 30, high_bytes=[0.0] * 30,
    )  # fmt: skip
    points = [(1.0, 0.0), (2.0, 0.0)]
    series = [{"broker_id": 3, "volume_name": "/a", "points": points}]
    shown = str(usage({"forecasts": [strange], "series": series}))
    assert shown.count("limit of an unknown type") >= 3
    assert 'class="band"' in shown
    assert 'class="limit soft"' not in shown
