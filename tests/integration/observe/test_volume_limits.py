"""Paths of ``limits.volumes`` on real file systems: each is for the volume that it lies on."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from kquota.disks.volume_watch import VolumeWatch, recorded_volumes
from kquota.policy.limits import Limit, LimitType
from kquota.settings.model import LimitsSection, VolumeLimitsSection
from tests.integration.observe.conftest import Disk, MakeDisk, MakeWatch, run
from tests.integration.waiting import eventually


def own(hard: int = 7) -> VolumeLimitsSection:
    return VolumeLimitsSection(hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, hard))


def limits(*paths: Path, **others: VolumeLimitsSection) -> LimitsSection:
    return LimitsSection(volumes={str(path): own() for path in paths} | others)


def paths(watch: VolumeWatch) -> list[str | None]:
    return [volume.limits_path for volume in watch.observe().volumes]


def problems(watch: VolumeWatch) -> list[str]:
    return [problem.path for problem in watch.observe().limits_problems]


@pytest.fixture
def bound_path(tmp_path: Path, taken_down: ExitStack, make_disk: MakeDisk) -> tuple[Disk, Path]:
    disk, bound = make_disk("1"), tmp_path / "bound"
    bound.mkdir()
    run("mount", "--bind", disk.mount_point, bound)
    taken_down.callback(run, "umount", "-l", bound)
    return disk, bound


@pytest.mark.accepts("A25")
def test_any_path_on_a_volume_is_for_it(
    bound_path: tuple[Disk, Path], make_disk: MakeDisk, make_watch: MakeWatch, tmp_path: Path
) -> None:
    disk, bound = bound_path
    log_dir, beside, link = disk.log_dir(), disk.log_dir("beside"), tmp_path / "link"
    link.symlink_to(beside)
    other = make_disk("2").log_dir()
    for path in (disk.mount_point, log_dir, beside, link, bound):
        watch = make_watch(log_dir, other, limits=limits(path)).watch
        assert paths(watch) == [str(path), None]
        assert problems(watch) == []
        assert {volume.status for volume in watch.observe().volumes} == {"ok"}


@pytest.mark.accepts("A25")
def test_a_path_on_no_volume_of_the_broker_is_a_problem_and_no_weaker_limit(
    make_disk: MakeDisk, make_watch: MakeWatch, tmp_path: Path
) -> None:
    one, two = make_disk("1"), make_disk("2")
    for path, why in (
        (two.mount_point, f"it lies on {two.mount_point}"),
        (one.mount_point / "typo", "does not exist"),
        (tmp_path, "it lies on "),
    ):
        watch = make_watch(one.log_dir(), limits=limits(path)).watch
        seen = watch.observe()
        assert problems(watch) == [str(path)]
        assert why in seen.limits_problems[0].wrong
        assert str(one.log_dir()) in seen.limits_problems[0].allowed
        (volume,) = seen.volumes
        assert (volume.status, volume.limits_path) == ("failed", None)
        assert str(path) in str(volume.reason)


@pytest.mark.accepts("A25")
def test_two_paths_of_one_volume_must_agree(make_disk: MakeDisk, make_watch: MakeWatch) -> None:
    disk = make_disk("1")
    log_dir = disk.log_dir()
    agreeing = make_watch(log_dir, limits=limits(disk.mount_point, log_dir)).watch
    assert (paths(agreeing), problems(agreeing)) == ([str(disk.mount_point)], [])
    disagreeing = make_watch(log_dir, limits=limits(disk.mount_point, **{str(log_dir): own(9)})).watch
    assert problems(disagreeing) == [str(log_dir)]
    (volume,) = disagreeing.observe().volumes
    assert volume.status == "failed"
    assert f"limits.volumes.{disk.mount_point}" in str(volume.reason)


@pytest.mark.accepts("A25", "F18")
def test_a_lost_volume_keeps_its_limits_also_at_a_restart(
    bound_path: tuple[Disk, Path], make_watch: MakeWatch
) -> None:
    disk, bound = bound_path
    log_dir = disk.log_dir()
    before = make_watch(log_dir, limits=limits(bound)).watch
    assert paths(before) == [str(bound)]
    before.recall(recorded_volumes(()))
    remembered, known = before.remembered, before.bound
    disk.unmount_lazily()
    run("umount", "-l", bound)
    # the directory is there again, on the file system below, and so is the path
    log_dir.mkdir()
    eventually(lambda: before.observe().volumes[0].status == "failed")
    restarted = make_watch(log_dir, limits=limits(bound), remembered=remembered, bound=known).watch
    for watch in (before, restarted):
        (volume,) = watch.observe().volumes
        assert (volume.volume_id, volume.status, volume.limits_path) == (disk.uuid, "failed", str(bound))
        assert problems(watch) == []
    log_dir.rmdir()
    disk.mount()
    for watch in (before, restarted):
        eventually(lambda watch=watch: watch.observe().volumes[0].status == "ok")
        assert paths(watch) == [str(bound)]
        assert problems(watch) == []
    run("mount", "--bind", disk.mount_point, bound)


@pytest.mark.accepts("A25", "F18")
def test_at_a_first_start_a_path_may_wait_for_its_mount(make_disk: MakeDisk, make_watch: MakeWatch) -> None:
    disk = make_disk("1")
    log_dir = disk.log_dir()
    disk.unmount_lazily()
    watch = make_watch(log_dir, limits=limits(disk.mount_point)).watch
    (volume,) = watch.observe().volumes
    assert (volume.status, volume.limits_path) == ("failed", str(disk.mount_point))
    assert problems(watch) == []
    elsewhere = make_watch(log_dir, limits=limits(disk.mount_point.parent / "elsewhere")).watch
    seen = elsewhere.observe()
    assert (seen.limits_problems, seen.volumes[0].status) == ((), "failed")
    assert any("elsewhere" in warning for warning in seen.warnings)
    disk.mount()
    eventually(lambda: watch.observe().volumes[0].status == "ok")
    assert paths(watch) == [str(disk.mount_point)]
    eventually(lambda: problems(elsewhere) != [])
    assert elsewhere.observe().volumes[0].status == "failed"
