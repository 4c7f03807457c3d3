"""The mount table is read from the kernel's text, and a path is found on the right file system."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.mountinfo import Mount, MountTableReader, parse_mountinfo

GOLDEN = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
23 22 0:21 / /proc rw,nosuid shared:12 - proc proc rw
30 22 8:17 / /data/1 rw,noatime shared:30 - xfs /dev/sdb1 rw,attr2,inode64
31 22 253:0 / /data/2 rw,noatime shared:31 master:4 propagate_from:2 - ext4 /dev/mapper/vg0-kafka rw
32 22 0:45 /@kafka /data/3 rw,relatime shared:32 - btrfs /dev/sdc rw,subvolid=257,subvol=/@kafka
33 22 0:45 /@logs /data/4 rw,relatime shared:33 - btrfs /dev/sdc rw,subvolid=258,subvol=/@logs
34 22 0:50 / /data/5 rw,xattr,noacl - zfs tank/kafka rw,xattr,noacl
35 22 8:17 /kafka/logs /bound rw,noatime - xfs /dev/sdb1 rw,attr2
36 22 0:60 / /over rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
37 22 0:61 / /data/with\040blank rw - tmpfs tmpfs rw,size=1024k
38 22 8:33 / /stack rw - ext4 /dev/sdd1 rw
39 38 8:49 / /stack rw - ext4 /dev/sde1 rw
40 22 8:65 / /data/ro ro,relatime - ext4 /dev/sdf1 rw
41 22 8:81 / /data/gone rw,relatime - ext4 /dev/sdg1 rw,emergency_ro,errors=remount-ro
42 22 8:97 / /data/shut rw,relatime - ext4 /dev/sdh1 rw,shutdown
43 22 8:113 / /data/frozen ro,relatime - ext4 /dev/sdi1 ro
44 22 0:62 / /nosource rw -  tmpfs  rw
"""
TABLE = parse_mountinfo(GOLDEN.replace(" -  tmpfs  rw", " - tmpfs  rw"))


def found(path: str) -> Mount:
    mount = TABLE.mount_of(path)
    assert mount is not None
    return mount


@pytest.mark.parametrize(
    ("path", "source", "fs_type"),
    [
        ("/", "/dev/sda1", "ext4"),
        ("/data", "/dev/sda1", "ext4"),
        ("/data/1", "/dev/sdb1", "xfs"),
        ("/data/1/kafka-logs", "/dev/sdb1", "xfs"),
        ("/data/10", "/dev/sda1", "ext4"),
        ("/data/2/x/y", "/dev/mapper/vg0-kafka", "ext4"),
        ("/data/3/x", "/dev/sdc", "btrfs"),
        ("/data/5/x", "tank/kafka", "zfs"),
        ("/bound/x", "/dev/sdb1", "xfs"),
        ("/over/x", "overlay", "overlay"),
        ("/data/with blank/x", "tmpfs", "tmpfs"),
        ("/nosource/x", "", "tmpfs"),
    ],
)
def test_a_path_lies_on_the_longest_mount_point(path: str, source: str, fs_type: str) -> None:
    assert (found(path).source, found(path).fs_type) == (source, fs_type)


def test_of_mounts_stacked_on_one_point_the_last_counts() -> None:
    assert found("/stack/x").source == "/dev/sde1"


def test_binds_and_subvolumes_share_the_device_number() -> None:
    assert found("/bound").device == found("/data/1").device == "8:17"
    assert found("/bound").root == "/kafka/logs"
    assert found("/data/3").device == found("/data/4").device


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/data/1", None),
        # A service's sandbox: the mount is ro, the file system takes writes.
        ("/data/ro", None),
        ("/data/gone", "the kernel has made the file system read-only after an error"),
        ("/data/shut", "the file system has been shut down"),
        ("/data/frozen", "the file system is read-only"),
        # errors=remount-ro is a promise, not a state.
        ("/", None),
    ],
)
def test_only_the_file_systems_own_options_tell_of_a_fault(path: str, fault: str | None) -> None:
    assert found(path).fault == fault


def test_the_root_file_system_is_known_under_any_mount_point() -> None:
    table = parse_mountinfo(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:1 /srv /srv rw - ext4 /dev/sda1 rw\n"
        "3 1 8:2 / /data rw - ext4 /dev/sda2 rw\n"
    )
    assert table.is_root(table.by_id[2])
    assert not table.is_root(table.by_id[3])


def test_an_empty_table_has_no_mount_for_a_path() -> None:
    assert parse_mountinfo("").mount_of("/x") is None


@pytest.mark.parametrize("line", ["x", "1 2 3 4 5 6 7", "1 0 8:1 / / rw - ext4", "a 0 8:1 / / rw - x y z"])
def test_a_line_of_another_form_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="not a line of mountinfo"):
        parse_mountinfo(line)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30))
def test_any_mount_point_survives_the_kernels_escapes(name: str) -> None:
    mount_point = "/" + name
    escaped = mount_point
    for character in "\\ \t\n#":
        escaped = escaped.replace(character, f"\\{ord(character):03o}")
    table = parse_mountinfo(f"5 1 8:1 / {escaped} rw - ext4 /dev/sda1 rw\n")
    assert table.mounts[0].mount_point == mount_point


def test_the_running_kernels_table_agrees_with_its_own_idea_of_a_mount() -> None:
    reader = MountTableReader()
    try:
        table = reader.current()
        for path in ("/", "/proc", "/sys", "/dev"):
            handle = os.open(path, os.O_PATH)
            try:
                fdinfo = Path(f"/proc/self/fdinfo/{handle}").read_text()
            finally:
                os.close(handle)
            mount_id = int(fdinfo.split("mnt_id:")[1].split()[0])
            assert table.mount_of(path) == table.by_id[mount_id]
    finally:
        reader.close()


def test_the_table_is_read_again_when_it_is_due_or_lacks_a_mount(tmp_path: Path) -> None:
    file = tmp_path / "mountinfo"
    file.write_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n")
    reader = MountTableReader(str(file), refresh_seconds=3600)
    try:
        assert set(reader.current().by_id) == {1}
        assert reader.changes == 1
        file.write_text("1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /data rw - ext4 /dev/sda2 rw\n")
        assert set(reader.current(wanted_ids=[1]).by_id) == {1}
        assert set(reader.current(wanted_ids=[1, 2]).by_id) == {1, 2}
        assert reader.changes == 2
    finally:
        reader.close()


def test_a_mount_point_that_is_no_utf_8_can_be_written_into_a_report(tmp_path: Path) -> None:
    file = tmp_path / "mountinfo"
    file.write_bytes(b"1 0 8:1 / /donn\xe9es rw - ext4 /dev/sda1 rw\n")
    reader = MountTableReader(str(file))
    try:
        assert [mount.mount_point for mount in reader.current().mounts] == ["/donn\ufffdes"]
    finally:
        reader.close()


LINE = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"


class Poll:
    """The kernel's announcements, as the test has them."""

    def __init__(self) -> None:
        self.registered: list[tuple[int, int]] = []
        self.timeouts: list[float] = []
        self.events = 0

    def register(self, descriptor: int, events: int) -> None:
        self.registered.append((descriptor, events))

    def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
        self.timeouts.append(timeout_ms)
        return [(3, self.events)]


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> Poll:
    poll = Poll()
    monkeypatch.setattr("kquota.disks.mountinfo.select.poll", lambda: poll)
    return poll


@pytest.mark.parametrize(
    ("events", "read"),
    [(0, False), (select.POLLIN, False), (select.POLLPRI, True), (select.POLLERR, True)],
)
def test_the_table_is_read_again_at_once_when_the_kernel_announces_a_change(
    tmp_path: Path, poll: Poll, events: int, read: bool
) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(LINE)
    reader = MountTableReader(str(file), refresh_seconds=3600)
    try:
        reader.current()
        file.write_text(LINE + "2 1 8:2 / /data rw - ext4 /dev/sda2 rw\n")
        poll.events = events
        assert (2 in reader.current().by_id) is read
    finally:
        reader.close()
    ((descriptor, awaited),) = poll.registered
    assert (descriptor >= 0, awaited) == (True, select.POLLPRI | select.POLLERR)
    assert poll.timeouts == [0, 0], "it never waits"


def test_an_unannounced_change_is_found_within_the_time_to_refresh(
    tmp_path: Path, poll: Poll, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("kquota.disks.mountinfo.time.monotonic", lambda: now)
    file = tmp_path / "mountinfo"
    file.write_text(LINE)
    reader = MountTableReader(str(file))
    try:
        reader.current()
        file.write_text(LINE + "2 1 8:2 / /data rw - ext4 /dev/sda2 rw\n")
        now = 100.99
        assert 2 not in reader.current().by_id
        now = 101.0
        assert 2 in reader.current().by_id
        now = 102.0
        reader.current()
        assert reader.changes == 2, "reading the same again is no change"
    finally:
        reader.close()


def test_an_empty_table_is_a_table(tmp_path: Path, poll: Poll) -> None:
    file = tmp_path / "mountinfo"
    file.touch()
    reader = MountTableReader(str(file))
    try:
        assert (reader.current().mounts, reader.changes) == ((), 0)
    finally:
        reader.close()


def test_a_table_of_many_mounts_is_read_whole(tmp_path: Path, poll: Poll) -> None:
    file = tmp_path / "mountinfo"
    lines = [f"{number} 0 8:{number} / /data/{number} rw - ext4 /dev/x rw\n" for number in range(1, 5000)]
    file.write_text("".join(lines))
    assert file.stat().st_size > 2 * 65536
    reader = MountTableReader(str(file))
    try:
        assert set(reader.current().by_id) == set(range(1, 5000))
    finally:
        reader.close()
