"""The usage record: read, refused and ignored values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from kquota.formats.usage_fields import MalformedRecord
from kquota.formats.usage_format import MAX_VOLUMES, parse_usage, usage_to_document
from kquota.policy.limits import MAX_BYTES
from kquota.policy.volume import VolumeRole, VolumeStatus
from tests.unit.policy.situations import GB, HARD_10_GB, free, limit, raw, usage

# The proposal's message, and nothing else.
MINIMAL: dict[str, Any] = {
    "SnapshotAt": "2026-11-20T10:15:30.123Z",
    "HardLimit": {"type": "MinFreePercentage", "level": 5},
    "SoftLimit": {"type": "MinFreePercentage", "level": 15},
    "Volumes": [{"VolumeName": "/dev/sda1", "Capacity": 1_000_000, "Consumed": 400_000}],
}
FULL: dict[str, Any] = {
    **MINIMAL,
    "SchemaVersion": 1,
    "ClusterId": "4L6g3nShT-eMCtK--X86sw",
    "InstanceId": "7d1f6a52-2a3e-4a63-9d7a-6b4b4c2d1e0f",
    "Sequence": 17,
    "Volumes": [
        {
            "VolumeName": "/dev/sda1",
            "Capacity": 1_000_000,
            "Consumed": 400_000,
            "VolumeId": "fs uuid",
            "LogDirs": ["/data/1"],
            "HardLimit": {"type": "MinFreeBytes", "level": 10_000},
            "Status": "ok",
            "Latched": "HARD",
        }
    ],
    "Applied": {"State": "OPEN", "Factor": 1.0, "Sequence": 41, "Mechanism": "governor", "Mode": "enforce"},
}


def changed(path: str, value: object, base: dict[str, Any] = MINIMAL) -> bytes:
    """Return the record with one field set, or removed (``...``)."""
    document = json.loads(json.dumps(base))
    target: Any = document
    *parents, last = path.split(".")
    for parent in parents:
        target = target[int(parent) if parent.isdigit() else parent]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return json.dumps(document).encode()


@pytest.mark.accepts("A22", "A23")
def test_the_four_required_fields_are_enough() -> None:
    record = parse_usage(raw(MINIMAL) or b"")
    (volume,) = record.volumes
    assert record.snapshot_at == datetime(2026, 11, 20, 10, 15, 30, 123000, tzinfo=UTC)
    assert (volume.name, volume.capacity_bytes, volume.consumed_bytes) == ("/dev/sda1", 1_000_000, 400_000)
    assert (volume.status, volume.role, volume.latched) == (VolumeStatus.OK, VolumeRole.DATA, False)
    assert record.invalid_limit is None


@pytest.mark.accepts("A22", "A23")
def test_every_field_of_ours_is_read() -> None:
    record = parse_usage(json.dumps(FULL))
    assert (record.cluster_id, record.instance_id, record.sequence) == (
        "4L6g3nShT-eMCtK--X86sw",
        "7d1f6a52-2a3e-4a63-9d7a-6b4b4c2d1e0f",
        17,
    )
    (volume,) = record.volumes
    assert (volume.volume_id, volume.log_dirs, volume.latched) == ("fs uuid", ("/data/1",), True)
    assert record.applied is not None
    assert record.applied["Mechanism"] == "governor"
    assert usage_to_document(record, applied=FULL["Applied"]) == FULL


@pytest.mark.accepts("A31", "F5", "F6")
@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"17",
        b'"text"',
        b"{",
        b"\xff\xfe",
        b"{'SnapshotAt': 1}",
        json.dumps(MINIMAL).encode()[:-1],
        json.dumps(MINIMAL).encode() + b"{}",
        json.dumps(MINIMAL).replace("1000000", "NaN").encode(),
        json.dumps(MINIMAL).replace("1000000", "Infinity").encode(),
        json.dumps(MINIMAL).replace("1000000", "1" * 5000).encode(),
        json.dumps(MINIMAL).replace("1000000", "1e999999999999999999999").encode(),
        json.dumps(MINIMAL).replace('"Consumed"', '"Capacity": 1, "Consumed"').encode(),
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        b" " * (1024 * 1024) + b"{}",
    ],
    ids=lambda text: f"{len(text)} bytes",
)
def test_what_is_no_such_json_is_malformed_and_never_raises_anything_else(text: bytes) -> None:
    with pytest.raises(MalformedRecord):
        parse_usage(text)


@pytest.mark.accepts("A23", "F6")
def test_the_number_of_volumes_is_bounded() -> None:
    volumes = [{"VolumeName": str(i), "Capacity": 1, "Consumed": 0} for i in range(MAX_VOLUMES + 1)]
    assert len(parse_usage(raw(usage(*volumes[:-1])) or b"").volumes) == MAX_VOLUMES
    with pytest.raises(MalformedRecord, match=f"^Volumes: .* {MAX_VOLUMES} "):
        parse_usage(raw(usage(*volumes)) or b"")


@pytest.mark.accepts("F6")
def test_a_million_volumes_are_refused_by_size_before_they_are_read() -> None:
    with pytest.raises(MalformedRecord, match=" 1048576 "):
        parse_usage(b'{"Volumes": [' + b"{}," * 1_000_000 + b"{}]}")


@pytest.mark.accepts("A25")
def test_a_volume_overrides_the_limits_of_the_message_one_by_one() -> None:
    record = parse_usage(
        raw(
            usage(
                free(15),
                free(15, "/dev/sdb1", HardLimit=limit("MinFreeBytes", 15 * GB)),
                free(15, "/dev/sdc1", SoftLimit=limit("MinFreeBytes", 15 * GB)),
                free(
                    15,
                    "/dev/sdd1",
                    SoftLimit=limit("MinFreePercentage", 16),
                    HardLimit=limit("ConsumedSpace", 88 * GB),
                ),
            )
        )
        or b""
    )
    assert [volume.headroom() for volume in record.volumes] == [
        Fraction(1, 2),
        Fraction(0),
        Fraction(1),
        Fraction(3, 4),
    ]


@pytest.mark.accepts("A2", "A25", "A31")
def test_a_volume_with_limits_of_its_own_is_judged_though_the_message_has_none_that_can_be() -> None:
    record = parse_usage(
        raw(
            usage(
                free(15, SoftLimit=limit("MinFreeBytes", 20 * GB), HardLimit=HARD_10_GB),
                free(15, "/dev/sdb1"),
                SoftLimit=limit("Unheard", 1),
                HardLimit=limit("Unheard", 2),
            )
        )
        or b""
    )
    assert [volume.headroom() for volume in record.volumes] == [Fraction(1, 2), None]
    assert record.invalid_limit is not None
    assert "Unheard" in record.invalid_limit


@pytest.mark.accepts("A22", "F26")
def test_readers_ignore_what_they_do_not_know() -> None:
    newer = json.loads(json.dumps(FULL))
    newer |= {"SchemaVersion": 99, "Predictions": [{"deep": [1, 2, {"x": None}]}], "snapshotAt": "other"}
    newer["HardLimit"]["unit"] = "percent"
    newer["Volumes"][0]["Temperature"] = {"celsius": 7}
    older = parse_usage(json.dumps(FULL))
    assert parse_usage(json.dumps(newer)) == older


@pytest.mark.accepts("F26")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ClusterId", 7),
        ("InstanceId", None),
        ("Sequence", "17"),
        ("Sequence", -1),
        ("Sequence", True),
        ("Applied", [1]),
        ("SchemaVersion", "two"),
    ],
)
def test_a_garbled_optional_field_is_as_if_absent(field: str, value: object) -> None:
    assert parse_usage(raw({**MINIMAL, field: value}) or b"") == parse_usage(raw(MINIMAL) or b"")


@pytest.mark.accepts("F26", "A28")
def test_a_status_or_latch_of_a_newer_version_is_never_read_as_fine() -> None:
    (volume,) = parse_usage(changed("Volumes.0.Status", "degraded")).volumes
    assert volume.status is VolumeStatus.FAILED
    (volume,) = parse_usage(changed("Volumes.0.Latched", "SOFT")).volumes
    assert (volume.latched, volume.headroom()) == (True, Fraction(0))
    (volume,) = parse_usage(changed("Volumes.0.Role", "cache")).volumes
    assert volume.role is VolumeRole.DATA


def test_texts_of_strangers_are_made_fit_to_print() -> None:
    (volume,) = parse_usage(changed("Volumes.0.VolumeId", "a\x1b[31m\n" + "b" * 5000)).volumes
    assert volume.volume_id is not None
    assert volume.volume_id.isprintable()
    assert len(volume.volume_id) == 1024


@pytest.mark.parametrize("written", ["0", "0.0", "1e6", "1000000.0", f"{MAX_BYTES}", f"{MAX_BYTES}.0"])
def test_a_size_is_a_whole_number_however_it_is_written(written: str) -> None:
    text = changed("Volumes.0.Capacity", MAX_BYTES).decode().replace('": 400000', f'": {written}')
    consumed = parse_usage(text).volumes[0].consumed_bytes
    assert (consumed, type(consumed)) == (int(Decimal(written)), int)


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("1.6", 2),
        ("-3", -3),
        (f"{MAX_BYTES}", MAX_BYTES),
        (f"{MAX_BYTES + 1}", None),
        ('"7"', None),
        ("null", None),
    ],
)
def test_a_fill_rate_that_can_not_be_used_is_not_known(written: str, rate: int | None) -> None:
    text = json.dumps(MINIMAL).replace('"Consumed"', f'"FillBytesPerSecond": {written}, "Consumed"')
    assert parse_usage(text).volumes[0].fill_bytes_per_second == rate


def test_a_volume_that_fills_says_when_it_reaches_its_limits() -> None:
    filling = changed("Volumes.0.FillBytesPerSecond", 1000)
    assert parse_usage(filling).volumes[0].seconds_to_limits() == (450.0, 550.0)
    without_limits = changed("SoftLimit.type", "Unheard", json.loads(filling))
    assert parse_usage(without_limits).volumes[0].seconds_to_limits() == (None, None)


@pytest.mark.accepts("A2")
def test_a_record_that_can_not_be_judged_is_not_published() -> None:
    record = parse_usage(changed("SoftLimit.type", "Unheard"))
    with pytest.raises(ValueError, match="without limits"):
        usage_to_document(record)
