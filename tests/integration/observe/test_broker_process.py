"""The broker's process, as the agent sees it: real processes with Kafka's command line and Kafka's locks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from kquota.disks.broker_dirs import Place, with_broker_dirs
from kquota.disks.broker_process import BrokerProcess, ProcessWatch, find_broker
from kquota.disks.server_properties import read_broker_properties
from kquota.disks.volume_watch import VolumeWatch
from testbed.loopback.cluster import KafkaCluster
from tests.integration.observe.conftest import run

# Locks the named files as Java does, says so, and waits.
BROKER = """
import fcntl, sys
locked = [open(path, "w") for path in sys.argv[1].split(",") if path]
for file in locked:
    fcntl.lockf(file, fcntl.LOCK_EX)
print("started", flush=True)
sys.stdin.read()
"""
# Prints what it finds, by the rights of the user that runs it.
SEES = """
import sys
from pathlib import Path
from kquota.disks.broker_process import find_broker
from kquota.disks.server_properties import read_broker_properties
found = find_broker(read_broker_properties(Path(sys.argv[1])), settling_seconds=0)
print(0 if found is None else len(found.locked))
"""


@dataclass
class Machine:
    """A host with the configured file and a log dir; its processes end with the test."""

    root: Path
    stack: ExitStack

    def __post_init__(self) -> None:
        self.log_dir, self.other = self.root / "1", self.root / "2"
        self.log_dir.mkdir()
        self.other.mkdir()
        self.file = self.properties("server.properties", self.log_dir)
        self.root.chmod(0o755)

    def properties(self, name: str, *log_dirs: Path, extra: str = "") -> Path:
        path = self.root / name
        text = f"node.id=7\nlisteners=PLAINTEXT://:{os.getpid()}\nlog.dirs={','.join(map(str, log_dirs))}\n"
        path.write_text(text + extra, "utf-8")
        return path

    def start(
        self, file: Path, *arguments: str, locks: tuple[Path, ...] = (), before: str = "", root: str = ""
    ) -> subprocess.Popen[bytes]:
        """Start a broker in a mount namespace of its own, after ``before``, on another root if need be."""
        paths = ",".join(f"{path}/.lock" for path in locks)
        command = [sys.executable, "-c", BROKER, paths, "kafka.Kafka", str(file), *arguments]
        script = f'mount --make-rprivate /; {before} exec {root and f"chroot {root}"} "$@"'
        process = self.stack.enter_context(
            subprocess.Popen(
                ["unshare", "--mount", "sh", "-euc", script, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=self.root,
            )
        )
        assert process.stdout is not None
        self.stack.callback(process.kill)
        assert process.stdout.readline() == b"started\n"
        return process

    def find(self, settling_seconds: float = 0) -> BrokerProcess | None:
        return find_broker(read_broker_properties(self.file), settling_seconds=settling_seconds)

    def judged(self, settling_seconds: float = 0) -> list[str | None]:
        """Compare the volumes with the broker's process, as the agent does; return the reasons."""
        with VolumeWatch(read_broker_properties(self.file)) as watch:
            assert watch.wait_for_samples(60)
            seen = watch.observe()
            used: Mapping[str, Place | None] = watch.used_by(self.find(settling_seconds))
            return [volume.reason for volume in with_broker_dirs(seen, watch.looks, used).volumes]


@pytest.fixture
def machine() -> Iterator[Machine]:
    with TemporaryDirectory() as root, ExitStack() as stack:  # pytest's own may be entered by root alone
        yield Machine(Path(root), stack)


NOT_WATCHED = "the broker uses {other}, not among the log dirs that the agent watches"
ANOTHER = "{log_dir}: the broker has another directory at this path than the agent"


def expect(machine: Machine, begins: str | None) -> None:
    (reason,) = machine.judged()
    if begins is None:
        assert reason is None
    else:
        assert str(reason).startswith(begins.format(other=machine.other, log_dir=machine.log_dir))


@pytest.mark.accepts("A28")
@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        ([], None),
        (["--override", "log.dirs={other}"], NOT_WATCHED),
        (["--override=log.dirs={log_dir},{other}"], NOT_WATCHED),
        (["--override", "log.dirs={log_dir}/../1"], None),
        (["--override", "log.dirs={other}", "--override", "node.id=8"], None),
        (["--override", "log.dir={other}", "--override", "num.io.threads=8"], None),
        (["--override", "metadata.log.dir={other}"], NOT_WATCHED),
    ],
    ids=["none", "other", "one more", "same by another path", "another broker", "older key", "metadata"],
)
def test_overrides_on_the_command_line_count(
    machine: Machine, arguments: list[str], begins: str | None
) -> None:
    given = [one.format(other=machine.other, log_dir=machine.log_dir) for one in arguments]
    machine.start(machine.file, *given, locks=(machine.log_dir,) if begins is None else ())
    expect(machine, begins)


def test_without_a_broker_nothing_is_said(machine: Machine) -> None:
    assert machine.find() is None
    expect(machine, None)


@pytest.mark.accepts("A28")
def test_a_broker_that_runs_with_another_file_is_known_by_its_node_id_and_listeners(machine: Machine) -> None:
    other = machine.properties("other.properties", machine.other)
    started = machine.start(other)
    expect(machine, NOT_WATCHED)
    started.kill()
    started.wait()
    other.write_text(f"node.id=7\nlisteners=PLAINTEXT://:1\nlog.dirs={machine.other}\n", "utf-8")
    machine.start(other, locks=(machine.other,))
    expect(machine, None)
    machine.start(machine.file, locks=(machine.log_dir,))
    found = machine.find()
    assert found is not None
    assert found.directories == (str(machine.log_dir),), "the one with our file"


@pytest.mark.accepts("A28")
def test_a_file_that_was_edited_without_a_restart_is_compared_with_what_the_broker_has_locked(
    machine: Machine,
) -> None:
    machine.file = machine.properties("server.properties", machine.log_dir, machine.other)
    started = machine.start(machine.file, locks=(machine.log_dir, machine.other))
    expect(machine, None)
    third = machine.root / "3"
    third.mkdir()
    changed_at = started_at(started) + 3600

    def edit(*log_dirs: Path) -> None:
        machine.properties("server.properties", *log_dirs)
        os.utime(machine.file, (changed_at, changed_at))

    edit(machine.log_dir, third)
    assert f"{third}: the broker has another directory" in str(machine.judged())
    edit(machine.log_dir)
    expect(machine, "the broker uses a directory on /, not among")
    edit(machine.log_dir, machine.other)
    expect(machine, None)
    edit(machine.log_dir, machine.other, third)
    expect(machine, None)  # the broker is about to get it


def started_at(process: subprocess.Popen[bytes]) -> float:
    return Path(f"/proc/{process.pid}").stat().st_mtime


@pytest.mark.accepts("A28")
def test_another_mount_at_a_log_dir_s_path_is_seen_by_the_lock(machine: Machine) -> None:
    mounted = f"mount --bind {machine.other} {machine.log_dir};"
    machine.start(machine.file, locks=(machine.log_dir,), before=mounted)
    expect(machine, ANOTHER)
    assert machine.judged(settling_seconds=3600) == [None], "a broker that starts has locked nothing yet"


def test_the_same_directory_by_another_mount_is_the_same(machine: Machine) -> None:
    elsewhere = machine.root / "mounted"
    elsewhere.mkdir()
    machine.start(
        machine.file,
        *("--override", f"log.dirs={elsewhere}"),
        locks=(elsewhere,),
        before=f"mount --bind {machine.log_dir} {elsewhere};",
    )
    expect(machine, None)


def test_another_path_counts_once_the_broker_has_had_the_time_to_lock_its_log_dirs(machine: Machine) -> None:
    machine.start(machine.file, "--override", f"log.dirs={machine.other}", locks=(machine.other,))
    assert machine.judged(settling_seconds=3600) == [None], "it may lead to the same directory"
    expect(machine, NOT_WATCHED)


def test_a_lock_of_other_code_in_the_broker_is_no_difference(machine: Machine) -> None:
    machine.start(machine.file, locks=(machine.log_dir, machine.other))
    expect(machine, None)


def test_a_broker_on_another_root_is_not_taken_for_ours_by_its_path(machine: Machine) -> None:
    image = machine.root / "image"
    image.mkdir()
    container = (
        f"mount -t tmpfs tmpfs {image}; mkdir {image}/up {image}/work {image}/root;"
        f"mount -t overlay overlay -o lowerdir=/,upperdir={image}/up,workdir={image}/work {image}/root;"
    )
    machine.start(machine.file, "--override", "log.dirs=/container", before=container, root=f"{image}/root")
    assert machine.find() is None


def seen_by(machine: Machine, *user: str) -> str:
    return run(*user, sys.executable, "-c", SEES, machine.file)


def test_any_user_sees_it_unless_proc_hides_the_processes_of_others(machine: Machine) -> None:
    machine.start(machine.file, locks=(machine.log_dir,))
    nobody = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
    assert seen_by(machine, *nobody) == "1"
    hidden = "mount -t proc -o hidepid=invisible proc /proc"
    assert seen_by(machine, "unshare", "--mount", "sh", "-c", f'{hidden} && exec "$@"', "sh", *nobody) == "0"


def test_the_youngest_counts_while_one_is_replaced_by_another(machine: Machine) -> None:
    machine.start(machine.file, locks=(machine.other,))
    youngest = machine.start(machine.file, locks=(machine.log_dir,))
    found = machine.find()
    assert found is not None
    assert found.process_id == youngest.pid


def test_a_watch_sees_it_at_its_first_look_and_goes_on_with_it(machine: Machine) -> None:
    started = machine.start(machine.file)
    watch = ProcessWatch(read_broker_properties(machine.file))
    found = watch.latest(60)
    assert found is not None
    assert (found.process_id, found.has_settled) == (started.pid, False)
    assert watch.latest() is found, "the next look is due in five seconds"


def test_kafka_itself_locks_a_file_in_each_log_dir(one_broker: KafkaCluster) -> None:
    (node,) = one_broker.nodes.values()
    properties = read_broker_properties(node.layout.server_properties)
    found = find_broker(properties, settling_seconds=0)
    assert found is not None
    assert found.process_id == node.pid
    assert {inode for _, inode in found.locked} >= {
        (directory / ".lock").stat().st_ino for directory in properties.directories
    }
    with VolumeWatch(properties) as watch:
        assert watch.wait_for_samples(60)
        watch.observe()
        assert watch.used_by(found) == {}
