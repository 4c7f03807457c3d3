"""The agent's user gets access to a broker's files by ACLs of real file systems, and to nothing else."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kquota.cli.access import acting_as
from kquota.disks.probe_process import lock_and_format
from kquota.disks.topic_list import TopicList, topics_of
from tests.integration.observe.conftest import HangingDisk, MakeDisk, run

# Users that every Debian has.
AGENT, BROKER, OTHER = "nobody", "daemon", "games"


@pytest.fixture
def place(taken_down: ExitStack) -> Iterator[Path]:
    """A directory that all users can search, as /srv."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    taken_down.callback(shutil.rmtree, folder)
    return folder


@pytest.fixture
def mounted(place: Path, make_disk: MakeDisk, taken_down: ExitStack) -> Callable[[str], Path]:
    """`mounted("xfs")` is a new file system, where all users can search."""

    def mount(fs_type: str) -> Path:
        point = place / fs_type
        point.mkdir()
        make_disk(fs_type, fs_type).mount_onto(point)
        taken_down.callback(run, "umount", point)
        return point

    return mount


def directory(path: Path, owner: str = BROKER, mode: int = 0o750) -> Path:
    path.mkdir()
    return given(path, owner, mode)


def given(path: Path, owner: str, mode: int) -> Path:
    """Give the path to the owner, and to the group of the broker."""
    os.chown(path, pwd.getpwnam(owner).pw_uid, pwd.getpwnam(BROKER).pw_gid)
    path.chmod(mode)
    return path


def properties(folder: Path, *log_dirs: Path, owner: str = "root", mode: int = 0o640) -> Path:
    file = folder / "server.properties"
    file.write_text(f"node.id=1\nprocess.roles=broker\nlog.dirs={','.join(map(str, log_dirs))}\n")
    return given(file, owner, mode)


def access(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kquota", "access", file, "--user", AGENT]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def may(flag: str, path: Path) -> bool:
    """Whether the agent's user, in no group, may read (-r), search (-x) or write (-w) the path."""
    command = ("setpriv", "--reuid", AGENT, "--regid", "nogroup", "--clear-groups", "test", flag, path)
    return subprocess.run(command, check=False).returncode == 0


def what_the_probe_sees(log_dir: Path) -> tuple[tuple[str, ...] | None, tuple[str, str], str | None]:
    """As the agent's user: topics of the log dir, inode of its lock, whether it is formatted, and a link."""
    account = pwd.getpwnam(AGENT)
    with acting_as(account.pw_uid, account.pw_gid):
        handle = os.open(log_dir, os.O_RDONLY)
        try:
            listed = TopicList(os.fsencode(log_dir))
            listed.list(None, 0)
            names = [each.name for each in log_dir.iterdir()]
            return topics_of(names, 10), lock_and_format(handle), listed.link
        finally:
            os.close(handle)


@pytest.mark.parametrize("fs_type", ["ext4", "xfs"])
def test_the_agent_reads_what_it_needs_and_no_data_and_no_key(
    place: Path, mounted: Callable[[str], Path], fs_type: str
) -> None:
    """By its group and by Kafka's usual umask, it could read all of it."""
    above = directory(mounted(fs_type) / "kafka")
    log_dir = directory(above / "log")
    partition = directory(log_dir / "topic-0")
    partition.chmod(0o755)
    segment, meta = partition / "00.log", log_dir / "meta.properties"
    lock = log_dir / ".lock"
    for file in (segment, meta, lock):
        file.touch()
    etc = directory(place / "etc", "root")
    file = properties(etc, log_dir)
    key = etc / "broker.pem"
    key.touch()
    given(key, "root", 0o640)
    needed = [("-r", file), ("-x", etc), ("-x", above), ("-r", log_dir)]
    assert [may(*each) for each in needed] == [False] * 4

    done = access(file)
    assert (done.returncode, done.stderr) == (0, "")
    assert [may(*each) for each in needed] == [True] * 4
    others = [("-r", etc), ("-r", above), ("-r", key), ("-x", log_dir), ("-r", meta), ("-r", segment)]
    assert [may(*each) for each in others] == [False] * 6
    assert what_the_probe_sees(log_dir) == (("topic",), (str(lock.stat().st_ino), "1"), None)
    meta.unlink()
    lock.unlink()
    (log_dir / "other-0").symlink_to(partition)
    assert what_the_probe_sees(log_dir) == (("other", "topic"), ("0", "0"), "other-0")
    (log_dir / "other-0").unlink()
    assert not any(may("-w", each) for each in (file, etc, above, log_dir))
    assert [oct(each.stat().st_mode & 0o777) for each in (file, etc, above, log_dir)] == [
        "0o640",
        *["0o750"] * 3,
    ]

    again = access(file)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    # As a template does, and a disk that is replaced.
    file.unlink()
    file = properties(etc, log_dir)
    shutil.rmtree(log_dir)
    directory(log_dir, mode=0o700)
    assert access(file).stdout.splitlines() == [
        f"{AGENT} has r on {file}",
        f"{AGENT} has r on {log_dir}",
    ]
    assert [may(*each) for each in needed] == [True] * 4


def test_who_may_write_the_broker_s_configuration_opens_no_file_of_root_or_another_user(place: Path) -> None:
    etc = directory(place / "etc", BROKER)
    for owner in ("root", OTHER):
        target = directory(place / f"{owner}-s", owner, 0o700)
        for mode, writer in ((0o640, BROKER), (0o664, "root")):
            done = access(properties(etc, target, owner=writer, mode=mode))
            assert done.returncode == 1
            assert f"{target} is owned by {owner}" in done.stderr
            assert f"setfacl -m u:{AGENT}:r {target}" in done.stderr
            assert not may("-r", target)


def test_a_link_of_the_broker_s_user_opens_no_file_of_root_or_another_user(place: Path) -> None:
    etc, data = directory(place / "etc", "root"), directory(place / "data")
    for owner in ("root", OTHER):
        target = directory(place / f"{owner}-s", owner, 0o700)
        (data / owner).symlink_to(target)
        done = access(properties(etc, data / owner))
        assert f"{target} is owned by {owner}, and its path comes from {BROKER}" in done.stderr
        assert not may("-r", target)
    inside = directory(data / "log")
    (place / "link").symlink_to(data)
    assert access(properties(etc, place / "link/log")).returncode == 0
    assert may("-r", inside)


def test_a_file_system_without_acls_and_a_dead_disk_keep_no_other_log_dir_from_it(
    place: Path, taken_down: ExitStack
) -> None:
    plain = directory(place / "plain")
    run("mount", "-t", "ramfs", "none", plain)
    taken_down.callback(run, "umount", plain)
    given(plain, BROKER, 0o750)
    dead = HangingDisk(place / "dead")
    taken_down.callback(dead.take_down)
    log_dir, missing = directory(place / "log"), place / "missing"
    file = properties(
        directory(place / "etc", "root"), plain, dead.mount_point, missing, Path("/dev/null"), log_dir
    )
    dead.hang_when_opened()
    done = access(file)
    assert done.returncode == 1
    assert f"the file system of {plain} has no ACLs: give the agent's unit the broker's group" in done.stderr
    assert f"{dead.mount_point} does not answer" in done.stderr
    assert f"{missing}: No such file or directory" in done.stderr
    assert "/dev/null: Not a directory" in done.stderr
    assert done.stdout.splitlines()[-1] == f"{AGENT} has r on {log_dir}"
    assert may("-r", log_dir)


def test_a_wrong_user_and_a_missing_configuration_are_named(place: Path) -> None:
    command = [sys.executable, "-m", "kquota", "access", place, "--user", "no-such"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("kquota: --user 'no-such': there is no such user: ")
    done = access(place / "server.properties")
    assert done.returncode == 1
    assert done.stderr == f"kquota: {place}/server.properties is no file\n"
