"""Volumes on real file systems: their identity, their consumption, and their faults."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from kquota.disks.volume_watch import recorded_volumes
from tests.integration.observe.conftest import MakeDisk, MakeWatch, run
from tests.integration.waiting import eventually


def free_as_nobody(path: Path) -> int:
    figures = os.statvfs(path)
    return figures.f_bavail * figures.f_frsize


@pytest.mark.accepts("A6", "A11", "A23")
def test_each_file_system_is_sampled_at_the_start_and_from_then_on(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    ext4, xfs = make_disk("1"), make_disk("2", "xfs")
    watch = make_watch(ext4.log_dir(), xfs.log_dir())
    first, second = watch.volumes
    assert (first.name, first.volume_id, first.mount_point) == (ext4.device, ext4.uuid, str(ext4.mount_point))
    assert (second.name, second.volume_id, second.fs_type) == (xfs.device, xfs.uuid, "xfs")
    assert {first.status, second.status} == {"ok"}
    figures = os.statvfs(ext4.mount_point)
    assert first.capacity_bytes == figures.f_blocks * figures.f_frsize
    assert first.consumed_bytes == first.capacity_bytes - free_as_nobody(ext4.mount_point)

    with (ext4.log_dir() / "segment").open("wb", buffering=0) as segment:
        segment.write(os.urandom(8 << 20))
        os.fsync(segment.fileno())  # os.sync() would wait for all disks of the machine
    before = first.consumed_bytes
    eventually(lambda: (watch.volumes[0].consumed_bytes or 0) >= before + (8 << 20))
    assert watch.volumes[1].consumed_bytes == second.consumed_bytes
    assert (watch.volumes[0].sampled_at_monotonic or 0) > (first.sampled_at_monotonic or 0)


@pytest.mark.accepts("A23")
def test_blocks_reserved_for_the_super_user_are_consumed(make_disk: MakeDisk, make_watch: MakeWatch) -> None:
    disk = make_disk("1", mkfs=("-m", "40"))
    volume = make_watch(disk.log_dir()).volume
    assert volume.capacity_bytes is not None
    assert volume.consumed_bytes is not None
    figures = os.statvfs(disk.mount_point)
    reserved_bytes = (figures.f_bfree - figures.f_bavail) * figures.f_frsize
    assert reserved_bytes > 0.3 * volume.capacity_bytes
    assert volume.consumed_bytes >= reserved_bytes
    assert volume.consumed_bytes == volume.capacity_bytes - free_as_nobody(disk.mount_point)


@pytest.mark.accepts("A28")
def test_several_log_dirs_symbolic_links_and_bind_mounts_of_one_file_system_count_once(
    make_disk: MakeDisk, make_watch: MakeWatch, tmp_path: Path, taken_down: ExitStack
) -> None:
    disk = make_disk("1")
    one, two, three = (disk.log_dir(name) for name in ("one", "two", "three"))
    link, bound = tmp_path / "link", tmp_path / "bound"
    link.symlink_to(two)
    bound.mkdir()
    run("mount", "--bind", three, bound)
    taken_down.callback(run, "umount", "-l", bound)
    volume = make_watch(one, link, bound).volume
    assert volume.log_dirs == (str(one), str(link), str(bound))
    assert (volume.status, volume.volume_id, volume.mount_point) == ("ok", disk.uuid, str(disk.mount_point))


@pytest.mark.accepts("A28", "F18")
def test_a_vanished_mount_fails_and_never_shows_the_figures_below_it(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    disk = make_disk("1")
    log_dir = disk.log_dir()
    watch = make_watch(log_dir)
    known = watch.volume
    watch.watch.recall(recorded_volumes(()))
    remembered = dict(watch.watch.remembered)
    disk.unmount_lazily()
    eventually(lambda: watch.volume.status == "failed")
    # The directory is there again, on the file system below, as after a broker's restart.
    log_dir.mkdir()
    eventually(lambda: "is gone" in watch.reason())
    lost = watch.volume
    assert (lost.name, lost.volume_id, lost.mount_point) == (known.name, known.volume_id, known.mount_point)
    assert (lost.capacity_bytes, lost.consumed_bytes) == (known.capacity_bytes, known.consumed_bytes)
    assert disk.uuid in watch.reason()

    restarted = make_watch(log_dir, remembered=remembered)
    assert (restarted.volume.status, restarted.volume.capacity_bytes) == ("failed", None)
    assert "is gone" in restarted.reason()

    log_dir.rmdir()
    disk.mount()
    eventually(lambda: watch.volume.status == "ok" and restarted.volume.status == "ok")
    assert restarted.volume.volume_id == disk.uuid


@pytest.mark.accepts("F18")
def test_another_volume_is_taken_only_when_it_is_accepted(make_disk: MakeDisk, make_watch: MakeWatch) -> None:
    old, new = make_disk("1"), make_disk("2", "xfs")
    watch = make_watch(old.mount_point)
    assert watch.volume.status == "ok"
    old.unmount_lazily()
    run("mount", "--bind", new.mount_point, old.mount_point)
    eventually(lambda: "is gone" in watch.reason() and new.uuid in watch.reason())
    assert watch.volume.volume_id == old.uuid
    watch.watch.accept(str(old.mount_point))
    assert (watch.volume.status, watch.volume.volume_id) == ("ok", new.uuid)
    assert watch.watch.remembered[str(old.mount_point)].fs_uuid == new.uuid


@pytest.mark.accepts("A28", "F17")
def test_a_shut_down_xfs_fails_and_leaves_its_neighbour_alone(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    xfs, ext4 = make_disk("1", "xfs"), make_disk("2")
    watch = make_watch(xfs.log_dir(), ext4.log_dir())
    run("xfs_io", "-x", "-c", "shutdown", xfs.mount_point)
    eventually(lambda: watch.volumes[0].status == "failed")
    eventually(lambda: "EIO" in watch.reason() or "shut down" in watch.reason())
    assert watch.volumes[1].status == "ok"


@pytest.mark.accepts("A28", "F17")
def test_an_ext4_that_stopped_after_an_error_fails_though_statvfs_still_answers(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    disk = make_disk("1", options="errors=remount-ro")
    watch = make_watch(disk.log_dir())
    assert watch.volume.status == "ok"
    Path(f"/sys/fs/ext4/{Path(disk.device).name}/trigger_fs_error").write_text("by a test")
    eventually(lambda: watch.volume.status == "failed")
    assert "read-only" in watch.reason()
    assert os.statvfs(disk.mount_point).f_blocks > 0


@pytest.mark.accepts("F17")
def test_a_shut_down_ext4_fails(make_disk: MakeDisk, make_watch: MakeWatch) -> None:
    disk = make_disk("1")
    watch = make_watch(disk.log_dir())
    run("xfs_io", "-x", "-c", "shutdown", disk.mount_point)
    eventually(lambda: watch.volume.status == "failed")


@pytest.mark.accepts("F17")
def test_a_read_only_file_system_fails_but_a_sandboxs_read_only_mount_of_it_does_not(
    make_disk: MakeDisk, make_watch: MakeWatch, tmp_path: Path, taken_down: ExitStack
) -> None:
    disk = make_disk("1")
    sandboxed = tmp_path / "sandboxed"
    sandboxed.mkdir()
    run("mount", "--bind", "-o", "ro", disk.log_dir(), sandboxed)
    taken_down.callback(run, "umount", "-l", sandboxed)
    with pytest.raises(OSError, match="Read-only"):
        (sandboxed / "x").touch()
    watch = make_watch(sandboxed)
    assert watch.volume.status == "ok"
    run("mount", "-o", "remount,ro", disk.device, disk.mount_point)
    eventually(lambda: watch.reason() == "the file system is read-only")


def test_a_log_dir_that_is_missing_or_a_file_fails_until_it_is_a_directory(
    make_disk: MakeDisk, make_watch: MakeWatch
) -> None:
    disk = make_disk("1")
    log_dir = disk.mount_point / "kafka-logs"
    watch = make_watch(log_dir)
    assert watch.reason().startswith(f"{log_dir}: does not exist;")
    assert watch.volume.name == disk.device
    log_dir.touch()
    eventually(lambda: watch.reason() == f"{log_dir}: is not a directory")
    log_dir.unlink()
    log_dir.mkdir()
    eventually(lambda: watch.volume.status == "ok")
