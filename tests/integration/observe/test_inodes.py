"""Inodes of real file systems: counted where their number is fixed."""

from __future__ import annotations

import os
from fractions import Fraction

import pytest

from kquota.guard.own_record import own_record
from kquota.settings.model import LimitsSection
from tests.integration.observe.conftest import MakeDisk, MakeWatch
from tests.integration.waiting import eventually
from tests.unit.policy.situations import NOW


@pytest.mark.accepts("F35")
def test_a_disk_without_a_free_inode_is_at_its_hard_limit_although_bytes_are_free(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    log_dir = make_disk("1", mkfs=("-N", "256")).log_dir()
    watch = make_watch(log_dir)
    before = watch.volume.inodes
    assert before == (os.statvfs(log_dir).f_files, os.statvfs(log_dir).f_favail)
    for number in range(before.free):
        os.mknod(log_dir / str(number))
    with pytest.raises(OSError, match="No space left on device"):
        os.mknod(log_dir / "one more")
    eventually(lambda: watch.volume.inodes == (before.total, 0), "the probe has seen it")
    limits = LimitsSection()
    record = own_record([watch.volume], limits, (), release_margin=Fraction(1, 10), snapshot_at=NOW)
    (volume,) = record.volumes
    assert (volume.latched, volume.headroom()) == (True, 0)
    assert volume.limits is not None
    assert volume.limits.headroom(volume.capacity_bytes, volume.consumed_bytes) == 1


@pytest.mark.long
@pytest.mark.accepts("F35")
def test_a_file_system_that_makes_inodes_as_it_needs_them_is_judged_by_bytes(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    log_dir = make_disk("1", "xfs").log_dir()
    assert os.statvfs(log_dir).f_files > 0
    assert make_watch(log_dir).volume.inodes is None
