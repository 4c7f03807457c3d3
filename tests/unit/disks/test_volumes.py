"""Log dirs become volumes: counted once, never with another file system's figures."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.disks.mountinfo import MountTable, parse_mountinfo
from kquota.disks.observation import VolumeObservation
from kquota.disks.probe import LogDirLook
from kquota.disks.server_properties import BrokerProperties, parse_broker_properties
from kquota.disks.volumes import Resolution, resolve
from kquota.policy.decision import Scope

UUID_1 = "11111111-2222-3333-4444-555555555555"
UUID_2 = "22222222-2222-3333-4444-555555555555"
MOUNTS = parse_mountinfo(
    "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "11 1 8:17 / /data/1 rw - xfs /dev/sdb1 rw\n"
    "12 1 8:33 / /data/2 rw - ext4 /dev/sdc1 rw\n"
    "13 1 8:17 /deep /bound rw - xfs /dev/sdb1 rw\n"
    "14 1 0:50 / /tmp1 rw - tmpfs tmpfs rw\n"
    "15 1 0:51 / /tmp2 rw - tmpfs tmpfs rw\n"
)
DEVICE_UUIDS = {"8:17": UUID_1, "8:33": UUID_2}


def properties(log_dirs: str, extra: str = "") -> BrokerProperties:
    return parse_broker_properties(f"node.id=1\nlog.dirs={log_dirs}\n{extra}".encode(), Path("s.properties"))


def look(log_dir: str, mount_id: int, *, capacity: int = 1000, available: int = 600) -> LogDirLook:
    return LogDirLook(
        log_dir,
        sampled_at_monotonic=5.0,
        mount_id=mount_id,
        capacity_bytes=capacity,
        available_bytes=available,
    )


def resolved(
    log_dirs: str,
    *looks: LogDirLook,
    mounts: MountTable = MOUNTS,
    before: Resolution | None = None,
    extra: str = "",
    silence: str | None = None,
    scope: Scope = Scope.CLUSTER,
) -> Resolution:
    return resolve(
        properties(log_dirs, extra),
        {one.log_dir: one for one in looks},
        mounts,
        {} if before is None else before.found,
        device_uuids=DEVICE_UUIDS,
        last_known={} if before is None else before.figures,
        silence=silence,
        scope=scope,
    )


def test_a_partition_that_is_a_link_to_another_file_system_fails_its_volume() -> None:
    volume = only(resolved("/data/1/k", replace(look("/data/1/k", 11), link="t-0")))
    assert volume.status == "failed"
    assert str(volume.reason).startswith("/data/1/k/t-0 is a symbolic link to another file system")


def only(resolution: Resolution) -> VolumeObservation:
    (volume,) = resolution.observation.volumes
    return volume


@pytest.mark.parametrize(
    ("first", "second", "topics"),
    [
        (("a", "c"), ("b", "c"), ("a", "b", "c")),
        ((), ("b",), ("b",)),
        ((), (), ()),
        (("a",), None, None),
        (None, ("b",), None),
    ],
)
def test_a_volume_has_the_topics_of_all_its_log_dirs_or_they_are_not_known(
    first: tuple[str, ...] | None, second: tuple[str, ...] | None, topics: tuple[str, ...] | None
) -> None:
    one, other = look("/data/1/k", 11), look("/data/1/l", 11)
    assert only(resolved("/data/1/k", replace(one, topics=first))).topics == first
    found = resolved("/data/1/k,/data/1/l", replace(one, topics=first), replace(other, topics=second))
    assert only(found).topics == topics
    assert only(resolved("/data/1/k,/data/1/l", replace(one, topics=("a",)))).topics is None


@pytest.mark.accepts("A28")
@pytest.mark.parametrize(("first", "second"), [(10, 90), (90, 10)])
def test_of_log_dirs_with_project_quotas_of_their_own_the_fullest_counts(first: int, second: int) -> None:
    found = resolved(
        "/data/1/k,/data/1/l",
        replace(look("/data/1/k", 11, capacity=100, available=first), sampled_at_monotonic=5.1),
        replace(look("/data/1/l", 11, capacity=100, available=second), sampled_at_monotonic=5.2),
    )
    assert (only(found).capacity_bytes, only(found).consumed_bytes) == (100, 90)
    found = resolved(
        "/data/1/k,/data/1/l", look("/data/1/k", 11, capacity=100, available=10), look("/data/1/l", 11)
    )
    assert (only(found).capacity_bytes, only(found).consumed_bytes) == (100, 90)
    assert only(found).sampled_at_monotonic == 5.0


@pytest.mark.accepts("A6", "A23")
def test_each_file_system_is_a_volume_with_its_own_figures() -> None:
    found = resolved(
        "/data/1/k,/data/2/k", look("/data/1/k", 11, available=10), look("/data/2/k", 12, available=990)
    )
    first, second = found.observation.volumes
    assert (first.name, first.volume_id, first.mount_point) == ("/dev/sdb1", UUID_1, "/data/1")
    assert (first.capacity_bytes, first.consumed_bytes) == (1000, 990)
    assert (second.name, second.capacity_bytes, second.consumed_bytes) == ("/dev/sdc1", 1000, 10)
    assert {first.status, second.status} == {"ok"}
    assert first.sampled_at_monotonic == 5.0


@pytest.mark.accepts("A28")
def test_log_dirs_on_one_file_system_are_one_volume_also_through_a_bind_mount() -> None:
    newer = replace(look("/bound/c", 13, available=500), sampled_at_monotonic=6.0)
    volume = only(
        resolved("/data/1/a,/data/1/b,/bound/c", look("/data/1/a", 11), look("/data/1/b", 11), newer)
    )
    assert volume.log_dirs == ("/data/1/a", "/data/1/b", "/bound/c")
    assert volume.mount_point == "/data/1"
    assert (volume.consumed_bytes, volume.sampled_at_monotonic) == (500, 6.0)


def test_the_metadata_log_dir_is_a_volume_of_its_own_role_unless_data_is_there_too() -> None:
    apart = resolved(
        "/data/1/k", look("/data/1/k", 11), look("/data/2/m", 12), extra="metadata.log.dir=/data/2/m"
    )
    assert [volume.role for volume in apart.observation.volumes] == ["data", "metadata"]
    shared = resolved(
        "/data/1/k", look("/data/1/k", 11), look("/data/1/m", 11), extra="metadata.log.dir=/data/1/m"
    )
    assert only(shared).role == "data"
    controller = resolved("/data/1/k", look("/data/1/k", 11), extra="process.roles=controller")
    assert only(controller).role == "metadata"


@pytest.mark.accepts("A28", "F18")
def test_a_mount_that_is_gone_never_gives_the_root_file_systems_figures() -> None:
    before = resolved("/data/2/k", look("/data/2/k", 12, available=100))
    volume = only(resolved("/data/2/k", look("/data/2/k", 1, capacity=10**9, available=10**8), before=before))
    assert volume.status == "failed"
    assert (volume.name, volume.volume_id, volume.mount_point) == ("/dev/sdc1", UUID_2, "/data/2")
    assert (volume.capacity_bytes, volume.consumed_bytes) == (1000, 900)
    assert volume.reason is not None
    for part in ("/data/2", UUID_2, "is gone", "/dev/sda1 at /", "the root file system"):
        assert part in volume.reason


def test_without_any_known_figures_a_lost_volume_has_none() -> None:
    before = resolved("/data/2/k", look("/data/2/k", 12))
    volume = only(resolved("/data/2/k", look("/data/2/k", 1), before=replace(before, figures={})))
    assert (volume.capacity_bytes, volume.consumed_bytes, volume.sampled_at_monotonic) == (None, None, None)


def test_a_lost_volume_stays_lost_until_it_is_back() -> None:
    first = resolved("/data/2/k", look("/data/2/k", 12))
    lost = resolved("/data/2/k", look("/data/2/k", 1), before=first)
    assert lost.found == {}
    back = resolved("/data/2/k", look("/data/2/k", 12, available=1), before=first)
    assert (only(back).status, only(back).consumed_bytes) == ("ok", 999)


def test_another_file_system_on_the_same_mount_point_is_not_the_remembered_one() -> None:
    before = resolved("/data/2/k", look("/data/2/k", 12))
    swapped = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n12 1 8:17 / /data/2 rw - ext4 /dev/sdc1 rw\n"
    )
    volume = only(resolved("/data/2/k", look("/data/2/k", 12, available=999), mounts=swapped, before=before))
    assert (volume.status, volume.consumed_bytes) == ("failed", 400)


def test_a_file_system_that_moved_to_another_device_name_is_still_the_same() -> None:
    before = resolved("/data/2/k", look("/data/2/k", 12))
    renamed = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n12 1 8:33 / /data/2 rw - ext4 /dev/sdz1 rw\n"
    )
    volume = only(resolved("/data/2/k", look("/data/2/k", 12), mounts=renamed, before=before))
    assert (volume.status, volume.name, volume.volume_id) == ("ok", "/dev/sdz1", UUID_2)


def test_without_a_uuid_source_type_and_mount_point_are_compared() -> None:
    before = resolved("/tmp1/k", look("/tmp1/k", 14))
    renumbered = parse_mountinfo("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n9 1 0:77 / /tmp1 rw - tmpfs tmpfs rw\n")
    assert only(resolved("/tmp1/k", look("/tmp1/k", 9), mounts=renumbered, before=before)).status == "ok"
    nested = parse_mountinfo("1 0 0:9 / / rw - tmpfs tmpfs rw\n")
    assert only(resolved("/tmp1/k", look("/tmp1/k", 1), mounts=nested, before=before)).status == "failed"


def test_a_file_system_without_a_device_of_its_own_is_named_with_its_mount_point() -> None:
    found = resolved("/tmp1/k,/tmp2/k", look("/tmp1/k", 14), look("/tmp2/k", 15))
    assert [volume.name for volume in found.observation.volumes] == ["tmpfs@/tmp1", "tmpfs@/tmp2"]
    assert [volume.volume_id for volume in found.observation.volumes] == [
        "tmpfs:tmpfs@/tmp1",
        "tmpfs:tmpfs@/tmp2",
    ]


def test_names_and_ids_are_such_as_readers_of_the_usage_topic_take() -> None:
    # a tab in the name of a share, a blank that does not break in that of a mount point
    odd = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "11 1 0:50 / /data/1 rw - cifs //server/a\\011share rw\n"
        "12 1 0:51 / /data/\u00a02 rw - tmpfs tmpfs rw\n"
    )
    log_dirs = ("/data/1/k", "/data/\\u00a02/k", "/data/gro\\u009fe")
    looks = (look("/data/1/k", 11), look("/data/\u00a02/k", 12))
    found = resolved(",".join(log_dirs), *looks, mounts=odd)
    texts = [(volume.name, volume.volume_id) for volume in found.observation.volumes]
    assert texts == [
        ("//server/a\ufffdshare", "cifs://server/a\ufffdshare@/data/1"),
        ("tmpfs@/data/\ufffd2", "tmpfs:tmpfs@/data/\ufffd2"),
        ("/data/gro\ufffde", "unknown@/data/gro\ufffde"),
    ]
    assert found.observation.volumes[1].mount_point == "/data/\u00a02", "by which its limits are found"


def test_names_stay_unique_when_devices_swap_names_and_one_volume_is_lost() -> None:
    before = resolved("/data/1/k,/data/2/k", look("/data/1/k", 11), look("/data/2/k", 12))
    swapped = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n11 1 8:17 / /data/1 rw - xfs /dev/sdc1 rw\n"
    )
    found = resolved(
        "/data/1/k,/data/2/k", look("/data/1/k", 11), look("/data/2/k", 1), mounts=swapped, before=before
    )
    assert [volume.name for volume in found.observation.volumes] == ["/dev/sdc1@/data/1", "/dev/sdc1@/data/2"]
    assert [volume.status for volume in found.observation.volumes] == ["ok", "failed"]


def test_two_copies_of_one_file_system_are_told_apart() -> None:
    found = resolve(
        properties("/data/1/k,/data/2/k"),
        {one.log_dir: one for one in (look("/data/1/k", 11), look("/data/2/k", 12))},
        MOUNTS,
        {},
        device_uuids={"8:17": UUID_1, "8:33": UUID_1},
    )
    assert len({volume.volume_id for volume in found.observation.volumes}) == 2
    assert any("same UUID" in warning for warning in found.observation.warnings)


def test_a_uuid_told_by_the_kernel_wins_over_udevs() -> None:
    volume = only(resolved("/data/1/k", replace(look("/data/1/k", 11), fs_uuid=UUID_2)))
    assert volume.volume_id == UUID_2


@pytest.mark.accepts("A30")
def test_a_uuid_that_is_not_told_any_more_leaves_the_volume_what_it_was() -> None:
    # Only the kernel has it here, and only for users that may list the directory: a latch is bound to the id.
    def seen(one: LogDirLook, before: Resolution | None, mounts: MountTable = MOUNTS) -> Resolution:
        remembered = {} if before is None else before.found
        return resolve(properties("/data/1/k"), {"/data/1/k": one}, mounts, remembered)

    told = replace(look("/data/1/k", 11), fs_uuid=UUID_1)
    untold = replace(told, fs_uuid=None, list_errno=errno.EACCES)
    first = seen(told, None)
    then = seen(untold, first)
    assert only(then).volume_id == only(first).volume_id == UUID_1
    assert then.found == first.found
    assert only(seen(replace(told, fs_uuid=UUID_2), then)).status == "failed", "another disk is no successor"
    moved = parse_mountinfo("11 1 8:33 / /data/1 rw - xfs /dev/sdc1 rw\n")
    assert only(seen(untold, then, moved)).status == "failed"


def test_a_log_dir_on_the_root_file_system_is_allowed_with_a_warning() -> None:
    found = resolved("/var/k", look("/var/k", 1))
    assert (only(found).status, only(found).consumed_bytes) == ("ok", 400)
    assert found.observation.warnings[0].startswith("/var/k is on the root file system")


def test_a_log_dir_that_waited_on_the_root_file_system_for_its_mount_has_found_it() -> None:
    before = resolved("/data/2/k", look("/data/2/k", 1))
    volume = only(resolved("/data/2/k", look("/data/2/k", 12, available=1), before=before))
    assert (volume.status, volume.volume_id, volume.consumed_bytes) == ("ok", UUID_2, 999)


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOENT, "/data/1/k: does not exist; mount it, or correct log.dirs in server.properties"),
        (errno.ENOTDIR, "/data/1/k: is not a directory"),
        (errno.EACCES, "/data/1/k: permission denied; run kquota access as root"),
        (errno.EIO, "/data/1/k: open failed: Input/output error (EIO)"),
        (errno.ENOTCONN, "/data/1/k: open failed: Transport endpoint is not connected (ENOTCONN)"),
    ],
)
def test_a_log_dir_that_cant_be_opened_fails_its_volume_with_a_reason(number: int, reason: str) -> None:
    failing = LogDirLook("/data/1/k", failed_step="open", failed_errno=number)
    volume = only(resolved("/data/1/k", failing))
    assert (volume.status, volume.reason, volume.name) == ("failed", reason, "/dev/sdb1")
    assert volume.capacity_bytes is None


def test_a_missing_log_dir_fails_the_volume_that_it_shares() -> None:
    failing = LogDirLook("/data/1/b", failed_step="open", failed_errno=errno.ENOENT)
    volume = only(resolved("/data/1/a,/data/1/b", look("/data/1/a", 11), failing))
    assert volume.status == "failed"
    assert volume.reason is not None
    assert volume.reason.startswith("/data/1/b: does not exist;")
    assert volume.consumed_bytes == 400


def test_a_log_dir_never_seen_is_no_reason_to_fail_the_root_file_system() -> None:
    failing = LogDirLook("/link/k", failed_step="open", failed_errno=errno.ENOENT)
    found = resolved("/var/k,/link/k", look("/var/k", 1), failing)
    root, unseen = found.observation.volumes
    assert (root.name, root.status) == ("/dev/sda1", "ok")
    assert (unseen.name, unseen.status, unseen.capacity_bytes) == ("/link/k", "failed", None)


@pytest.mark.accepts("F4")
def test_no_answer_for_long_enough_is_a_failure_with_the_last_known_figures() -> None:
    before = resolved("/data/1/k", look("/data/1/k", 11))
    short = only(resolved("/data/1/k", replace(look("/data/1/k", 11), waiting_seconds=4.75), before=before))
    assert short.status == "ok"
    volume = only(resolved("/data/1/k", replace(look("/data/1/k", 11), waiting_seconds=5.0), before=before))
    assert volume.reason == "/data/1/k: no answer from the file system for 5 s"
    assert (volume.status, volume.consumed_bytes) == ("failed", 400)


def test_before_the_first_sample_nothing_is_fine() -> None:
    assert only(resolved("/data/1/k")).reason == "/data/1/k: not sampled yet"


def test_a_mount_that_the_table_lacks_is_not_trusted() -> None:
    assert only(resolved("/data/1/k", look("/data/1/k", 99))).reason == "/data/1/k: its mount is changing"


@pytest.mark.accepts("F17")
@pytest.mark.parametrize(
    ("options", "reason"),
    [("ro", "read-only"), ("rw,emergency_ro", "read-only after an error"), ("rw,shutdown", "shut down")],
)
def test_a_file_system_that_takes_no_writes_fails(options: str, reason: str) -> None:
    table = parse_mountinfo(
        f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n11 1 8:17 / /data/1 rw - ext4 /dev/sdb1 {options}\n"
    )
    volume = only(resolved("/data/1/a,/data/1/b", look("/data/1/a", 11), look("/data/1/b", 11), mounts=table))
    assert volume.status == "failed"
    assert volume.reason is not None
    assert reason in volume.reason
    assert ";" not in volume.reason


@pytest.mark.accepts("F17")
def test_an_error_of_listing_fails_but_a_missing_right_only_warns() -> None:
    broken = only(resolved("/data/1/k", replace(look("/data/1/k", 11), list_errno=errno.EIO)))
    assert broken.reason == "/data/1/k: can't be listed: Input/output error (EIO)"
    private = resolved("/data/1/k", replace(look("/data/1/k", 11), list_errno=errno.EACCES))
    assert only(private).status == "ok"
    assert private.observation.warnings == (
        "/data/1/k can't be listed (permission denied): errors of its disk may go unseen",
    )


def test_with_the_scope_of_the_volume_the_warning_of_a_missing_right_says_who_is_held() -> None:
    private = replace(look("/data/1/k", 11), list_errno=errno.EACCES)
    found = resolved("/data/1/k", private, scope=Scope.VOLUME)
    assert found.observation.warnings == (
        "/data/1/k can't be listed (permission denied): errors of its disk may go unseen, and all producers"
        " are held while its volume is over a limit, because its topics are not known",
    )


def test_a_log_dir_of_metadata_alone_names_no_topics_and_holds_no_producer() -> None:
    private = replace(look("/data/1/m", 11), list_errno=errno.EACCES)
    data = look("/data/1/k", 11)
    found = resolved("/data/1/k", private, data, extra="metadata.log.dir=/data/1/m", scope=Scope.VOLUME)
    assert found.observation.warnings[0].endswith("may go unseen")


def test_figures_stay_in_bounds() -> None:
    assert only(resolved("/data/1/k", look("/data/1/k", 11, available=2000))).consumed_bytes == 0
    nothing = only(resolved("/data/1/k", look("/data/1/k", 11, capacity=0, available=0)))
    assert (nothing.status, nothing.capacity_bytes) == ("failed", None)


def test_a_silent_probe_fails_every_volume() -> None:
    found = resolved("/data/1/k,/data/2/k", look("/data/1/k", 11), look("/data/2/k", 12), silence="no answer")
    assert [volume.reason for volume in found.observation.volumes] == ["no answer", "no answer"]


def test_a_tmpfs_that_is_mounted_again_is_the_same_volume() -> None:
    first = resolved("/tmp1/k", replace(look("/tmp1/k", 14), fs_uuid=UUID_1))
    second = resolved("/tmp1/k", replace(look("/tmp1/k", 14), fs_uuid=UUID_2), before=first)
    assert (only(second).status, only(second).volume_id) == ("ok", only(first).volume_id)
