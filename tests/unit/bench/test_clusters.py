"""Simulated clusters: their segments obey Kafka's rules, and looks are those of `kquota.retention.expiry`."""

from __future__ import annotations

import numpy as np
import pytest

from bench.pipeline.fleets import clusters
from bench.pipeline.fleets.cluster_logs import (
    CHECK_MINUTES,
    DAY_MINUTES,
    DELAY_MINUTES,
    STEPS,
    TIMES,
    Log,
    Rules,
)
from bench.pipeline.fleets.made import MadeVolume
from kquota.disks.segments import BrokerRules, PartitionOnDisk, PartitionState, Segment, TopicRules
from kquota.retention.expiry import expiry_of
from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Ints

DAY = DAY_MINUTES
GB = 2.0**30
PHASE = 1.3
LOADS = ("steady", "nights", "ends", "swells")
RULES = {
    "by size and time": Rules(3.1 * DAY, roll_minutes=1.7 * DAY, roll_bytes=0.6 * GB),
    "hours": Rules(0.4 * DAY, roll_minutes=3.3 * 60),
    "shortened": Rules(6.2 * DAY, roll_minutes=1.9 * DAY, kept_later=((60.4 * DAY, 2.3 * DAY),)),
}


def written(load: str) -> Floats:
    """Bytes written to one partition by each of TIMES."""
    rng = np.random.default_rng(LOADS.index(load))
    step = np.arange(STEPS)
    rate = GB / 144 * rng.lognormal(0, 0.4, STEPS) * (1.2 + np.sin(step * 2 * np.pi / 144))
    if load == "nights":
        rate = np.where(step % 144 < 14, 6 * rate, 0.0)
    if load == "swells":
        rate = np.where(step % (13 * 144) < 11 * 144, 0.1 * rate, 4 * rate)
    if load == "ends":
        rate = np.where(step < 70 * 144, rate, 0.0)
    return np.concatenate([[0.0], np.cumsum(rate)])


@pytest.fixture(scope="module")
def made() -> list[MadeVolume]:
    return clusters.fleet(3, 8)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_segment_is_rolled_in_time_and_goes_when_its_newest_record_is_too_old(
    rules: Rules, load: str
) -> None:
    log = Log(written(load), rules, phase=PHASE)
    started = np.interp(log.starts + 1, log.written, TIMES)
    slack = 1e-3
    assert (np.diff(log.ends, prepend=0.0) <= rules.roll_bytes + 1).all()
    assert (log.newest - started <= rules.roll_minutes + slack).all()
    assert log.ends[-1] == log.written[-1], "each record is in a segment"
    shortest = min(keep for _, _, keep in rules.spans)
    assert (log.gone >= log.newest + shortest).all()
    checked = CHECK_MINUTES + DELAY_MINUTES + slack
    longest = max(keep for _, _, keep in rules.spans)
    assert (log.gone <= log.newest + longest + checked).all()
    assert (log.gone <= started + longest + rules.roll_minutes + checked).all()
    if (mortal := np.isfinite(log.gone)).any():
        checks = (log.gone[mortal] - DELAY_MINUTES - PHASE) / CHECK_MINUTES
        assert checks == pytest.approx(np.round(checks)), "the files go a while after a check"
    for since, until, keep in rules.spans:
        late = (log.newest >= since) & (log.newest + keep < until)
        assert (log.gone[late] <= log.newest[late] + keep + checked).all(), "the retention of that time"


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_bytes_leave_as_the_agent_says(rules: Rules, load: str) -> None:
    log = Log(written(load), rules, phase=PHASE)
    samples = np.unique(np.concatenate([np.random.default_rng(5).integers(1000, STEPS, 25), _edges(log)]))
    found = np.diff(log.leaving(samples), axis=1, prepend=0.0)
    sizes = log.sizes(samples)
    for sample, leaving, size in zip(samples, found, sizes, strict=True):
        keep = float(rules.keep_at(TIMES[[sample]])[0])
        expiry = expiry_of(_on_disk(log, int(sample)), _topic_rules(rules, keep), _CHECKS, _ms(TIMES[sample]))
        assert leaving == pytest.approx(expiry.leaving_bytes, abs=100)
        assert size - leaving.sum() == pytest.approx(expiry.never_bytes, abs=100)


def _edges(log: Log) -> Ints:
    """Samples at which a segment is about to leave, or to come into the next bucket."""
    gone = log.gone[(log.gone > 20 * DAY) & (log.gone < TIMES[-1])][::9]
    moments = np.concatenate([gone, *(gone - 60 * hours for hours in BOUND_HOURS[:-1])])
    step = np.floor(moments / 10).astype(np.int64)
    return np.concatenate([step, step + 1])[:200]


_CHECKS = BrokerRules(300_000, checked_ms=round(PHASE * 60_000))


def _ms(minutes: float) -> int:
    return round(minutes * 60_000)


def _on_disk(log: Log, sample: int) -> PartitionOnDisk:
    now, end = TIMES[sample], log.written[sample]
    here = np.flatnonzero((log.gone > now) & (log.starts < end))
    busy = np.flatnonzero(np.diff(log.written[: sample + 1]) > 0)
    segments = []
    for one in here:
        is_active = bool(log.ends[one] >= end)
        size = round(min(log.ends[one], end) - log.starts[one])
        newest = TIMES[busy[-1] + 1] if is_active else log.newest[one]
        segments.append(Segment(round(log.starts[one]), size, _ms(newest), is_active, size))
    return PartitionOnDisk("topic", 0, "/d", PartitionState.LOG, tuple(segments))


def _topic_rules(rules: Rules, keep: float) -> TopicRules:
    return TopicRules(
        cleanup_delete=True,
        cleanup_compact=False,
        retention_ms=_ms(keep),
        retention_bytes=None,
        segment_ms=_ms(rules.roll_minutes),
        segment_bytes=round(rules.roll_bytes),
        file_delete_delay_ms=_ms(DELAY_MINUTES),
    )


def test_a_deleted_topic_is_gone_after_the_delay() -> None:
    log = Log(written("steady"), RULES["hours"], deleted=50 * DAY)
    assert log.sizes(np.array([50 * 144]))[0] > 0
    assert log.sizes(np.array([50 * 144 + 1]))[0] == 0


def test_the_same_seed_makes_the_same_volumes_and_another_does_not(made: list[MadeVolume]) -> None:
    first, again, other = made[0], clusters.fleet(3, 1)[0], clusters.fleet(4, 1)[0]
    assert first.name == again.name
    assert (first.series.crest_bytes == again.series.crest_bytes).all()
    assert first.looks is not None
    assert again.looks is not None
    assert (first.looks.topic_soon_bytes == again.looks.topic_soon_bytes).all()
    assert first.series.capacity_bytes != other.series.capacity_bytes


def test_use_is_within_the_capacity_and_days_are_known(made: list[MadeVolume]) -> None:
    for one in made:
        use = one.known.crest_bytes / one.series.capacity_bytes
        assert 0.35 <= np.median(use) <= 0.9, one.name
        assert one.series.crest_bytes.max() < one.series.capacity_bytes, one.name
        assert 0.8 <= one.soft_bytes / one.series.capacity_bytes <= 0.9
        assert one.soft_bytes < one.hard_bytes < one.series.capacity_bytes
        assert 10 * DAY_HOURS <= one.cut + 1 - one.series.hours[0] <= 60 * DAY_HOURS + DAY_HOURS
        assert one.series.hours[-1] == one.cut + 14 * DAY_HOURS
        assert np.isfinite(one.crests_to_come(14)).all()


def test_the_bytes_of_a_look_are_those_of_the_volume(made: list[MadeVolume]) -> None:
    for one in made:
        looks = one.looks
        assert looks is not None
        assert (looks.hours == one.series.hours).all()
        all_bytes = looks.leaving_bytes.sum(axis=1) + looks.never_bytes
        assert (looks.leaving_bytes >= -1).all()
        assert (looks.never_bytes >= -1).all()
        assert (all_bytes <= one.series.crest_bytes + 1).all()
        # It is the last of six samples of the hour, which is the crest of one that rises.
        assert np.isclose(all_bytes, one.series.crest_bytes).mean() > 0.05, one.name
        named = (looks.topic_bytes > 0).sum(axis=1)
        assert named.max() <= clusters.NAMED_TOPICS
        whole = named < clusters.NAMED_TOPICS
        assert looks.topic_bytes[whole].sum(axis=1) == pytest.approx(all_bytes[whole])
        assert (looks.topic_soon_bytes <= looks.topic_bytes + 1).all()
        soon = looks.leaving_bytes[:, :2].sum(axis=1)
        assert looks.topic_soon_bytes[whole].sum(axis=1) == pytest.approx(soon[whole], abs=1)


def test_what_begins_after_the_cut_changes_no_hour_before_it(made: list[MadeVolume]) -> None:
    differs = 0
    for one in made:
        assert one.calm is not None
        assert one.calm.until(one.cut).crest_bytes == pytest.approx(one.known.crest_bytes)
        differs += not np.allclose(one.calm.crest_bytes, one.series.crest_bytes)
    assert differs, "in some clusters something begins"


def test_a_partition_has_its_replicas_on_different_brokers_in_the_log_dirs_with_the_fewest() -> None:
    made = clusters.cluster(np.random.default_rng(7))
    here: dict[clusters.Volume, int] = dict.fromkeys(made.volumes, 0)
    for partition in made.partitions:
        first = [stays[0].volume for stays in partition.replicas]
        assert len({broker for broker, _ in first}) == len(first)
        for volume in first:
            here[volume] += 1
    assert max(here.values()) <= 2 * min(here.values())
