"""The settings of topics and brokers that decide about segments."""

from __future__ import annotations

import pytest

from kquota.disks.segments import BrokerRules, InvalidTopicSettings, TopicRules, broker_rules, topic_rules

DEFAULTS = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.ms": "604800000",
    "segment.bytes": "1073741824",
    "file.delete.delay.ms": "60000",
    "remote.storage.enable": "false",
    "remote.log.copy.disable": "false",
    "local.retention.ms": "-2",
    "local.retention.bytes": "-2",
    "min.compaction.lag.ms": "0",
}


def test_the_defaults_of_kafka_are_a_week_without_a_bound_of_bytes() -> None:
    assert topic_rules(DEFAULTS) == TopicRules(
        cleanup_delete=True,
        cleanup_compact=False,
        retention_ms=604_800_000,
        retention_bytes=None,
        segment_ms=604_800_000,
        segment_bytes=1_073_741_824,
        file_delete_delay_ms=60_000,
        local_retention_ms=604_800_000,
    )


@pytest.mark.parametrize(
    ("policy", "delete", "compact"),
    [("compact", False, True), ("compact, delete", True, True), ("", False, False), ("delete", True, False)],
)
def test_the_cleanup_policy_is_a_list(policy: str, *, delete: bool, compact: bool) -> None:
    rules = topic_rules(DEFAULTS | {"cleanup.policy": policy})
    assert (rules.cleanup_delete, rules.cleanup_compact) == (delete, compact)


def test_the_local_retention_counts_only_where_segments_are_copied() -> None:
    tiered = DEFAULTS | {
        "remote.storage.enable": "true",
        "local.retention.ms": "1000",
        "local.retention.bytes": "-1",
        "retention.bytes": "5000",
    }

    def on_disk(settings: dict[str, str], *, broker: bool) -> tuple[int | None, int | None]:
        rules = topic_rules(settings, broker_has_remote_storage=broker)
        return rules.on_disk_ms, rules.on_disk_bytes

    assert on_disk(tiered, broker=True) == (1000, None)
    assert on_disk(tiered, broker=False) == (604_800_000, 5000)
    assert on_disk(tiered | {"remote.log.copy.disable": "true"}, broker=True) == (604_800_000, 5000)
    assert on_disk(tiered | {"cleanup.policy": "compact,delete"}, broker=True) == (604_800_000, 5000)
    as_retention = tiered | {"local.retention.ms": "-2", "local.retention.bytes": "-2"}
    assert on_disk(as_retention, broker=True) == (604_800_000, 5000)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"retention.ms": "soon"}, "retention.ms is soon, allowed is a whole number of at least -1"),
        ({"retention.bytes": "-2"}, "retention.bytes is -2, allowed is a whole number of at least -1"),
        ({"segment.ms": "-1"}, "segment.ms is -1, allowed is a whole number of at least 0"),
        ({"local.retention.ms": "-3"}, "local.retention.ms is -3, allowed is a whole number of at least -2"),
        ({"cleanup.policy": "shred"}, "cleanup.policy is shred, allowed are compact, delete, or both"),
    ],
)
def test_an_impossible_value_is_named(change: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidTopicSettings, match=f"^{sentence}$"):
        topic_rules(DEFAULTS | change)


@pytest.mark.parametrize(
    "missing", ["cleanup.policy", "retention.ms", "segment.bytes", "file.delete.delay.ms"]
)
def test_a_setting_that_every_topic_has_is_missed(missing: str) -> None:
    settings = {name: value for name, value in DEFAULTS.items() if name != missing}
    with pytest.raises(InvalidTopicSettings, match=missing):
        topic_rules(settings)


def test_a_broker_says_how_often_it_looks() -> None:
    assert broker_rules({"log.retention.check.interval.ms": "300000"}) == BrokerRules(300_000)
    own = {"log.retention.check.interval.ms": "300000", "log.segment.delete.delay.ms": "1000"}
    assert broker_rules(own) == BrokerRules(300_000, removal_delay_ms=1000)
    with pytest.raises(InvalidTopicSettings, match="no setting log"):
        broker_rules({})
