"""State lost and a mount missing, on real file systems: the last report shows where a log dir belongs."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from kquota.disks.volume_watch import recorded_volumes
from kquota.guard.own_record import own_record
from kquota.policy.limits import Limit, LimitType
from kquota.policy.usage import UsageRecord
from kquota.settings.model import LimitsSection
from tests.integration.observe.conftest import MakeDisk, MakeWatch, Watch
from tests.integration.waiting import eventually

# Every disk is over it.
_LIMITS = LimitsSection(
    hard=Limit.of(LimitType.CONSUMED_SPACE, 1), soft=Limit.of(LimitType.CONSUMED_SPACE, 0)
)


def report(watch: Watch, before: UsageRecord | None = None) -> UsageRecord:
    previous = () if before is None else before.volumes
    return own_record(
        watch.volumes,
        _LIMITS,
        previous,
        release_margin=Fraction(1, 10),
        snapshot_at=datetime(2026, 11, 20, tzinfo=UTC),
    )


@pytest.mark.accepts("A28", "A30", "F18")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_full_volume_whose_mount_is_missing_stays_full_without_a_state_file(
    make_disk: MakeDisk, make_watch: MakeWatch, is_there: bool
) -> None:
    disk = make_disk("1")
    log_dir = disk.log_dir()
    before = report(make_watch(log_dir))
    assert before.volumes[0].latched
    disk.unmount_lazily()
    if is_there:
        log_dir.mkdir()
    restarted = make_watch(log_dir)
    assert restarted.watch.remembered == {}, "nothing on the wrong disk is kept for the next start"
    restarted.watch.recall(recorded_volumes(before.volumes))
    (lost,) = report(restarted, before).volumes
    assert (lost.volume_id, lost.status, lost.latched) == (disk.uuid, "failed", True)
    assert lost.consumed_bytes == before.volumes[0].consumed_bytes
    assert ("as this broker last reported" if is_there else "does not exist") in restarted.reason()
    again = make_watch(log_dir, remembered=dict(restarted.watch.remembered))
    assert again.volume.volume_id == disk.uuid, "it is remembered from now on"

    shutil.rmtree(log_dir, ignore_errors=True)
    disk.mount()
    eventually(lambda: restarted.volume.status == again.volume.status == "ok")
    assert restarted.watch.remembered[str(log_dir)].fs_uuid == disk.uuid


def test_a_directory_on_another_disk_can_be_accepted(make_disk: MakeDisk, make_watch: MakeWatch) -> None:
    disk = make_disk("1")
    log_dir = disk.log_dir()
    before = report(make_watch(log_dir))
    disk.unmount_lazily()
    log_dir.mkdir()
    command = make_watch(log_dir)
    command.watch.accept()
    command.watch.observe()
    assert command.watch.remembered[str(log_dir)].volume_id != disk.uuid
    restarted = make_watch(log_dir, remembered=dict(command.watch.remembered))
    restarted.watch.recall(recorded_volumes(before.volumes))
    assert restarted.volume.status == "ok"


@pytest.mark.accepts("A28")
def test_the_probe_sees_whether_a_log_dir_is_formatted(make_watch: MakeWatch, tmp_path: Path) -> None:
    watch = make_watch(tmp_path)

    def formatted() -> bool | None:
        return watch.watch.sampler.latest()[str(tmp_path)].formatted

    assert formatted() is False
    (tmp_path / "meta.properties").write_text("version=1\n")
    eventually(lambda: formatted() is True)
