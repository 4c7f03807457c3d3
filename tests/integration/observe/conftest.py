"""Real file systems in files, mounted below the test's own directory, and always taken down again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest

from kquota.disks.identity import VolumeIdentity
from kquota.disks.mountinfo import parse_mountinfo
from kquota.disks.observation import VolumeObservation
from kquota.disks.server_properties import parse_broker_properties
from kquota.disks.volume_limits import Bound
from kquota.disks.volume_watch import VolumeWatch
from kquota.settings.model import LimitsSection
from tests.integration.waiting import eventually

HANG_SECONDS = 1.0
_SMALLEST_MIB = {"ext4": 16, "xfs": 300}


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr or done.stdout}"
    return done.stdout.strip()


@dataclass(frozen=True)
class Disk:
    """A file system on a loop device."""

    mount_point: Path
    device: str
    uuid: str

    def log_dir(self, name: str = "kafka-logs") -> Path:
        path = self.mount_point / name
        path.mkdir(exist_ok=True)
        return path

    def unmount_lazily(self) -> None:
        run("umount", "-l", self.mount_point)

    def mount(self) -> None:
        self.mount_onto(self.mount_point)

    def mount_onto(self, mount_point: Path) -> None:
        run("mount", self.device, mount_point)


class MakeDisk(Protocol):
    def __call__(
        self, name: str, fs_type: str = "ext4", *, mkfs: tuple[str, ...] = (), options: str = "rw"
    ) -> Disk: ...


@pytest.fixture(scope="session", autouse=True)
def _root() -> None:
    if os.geteuid() != 0:
        pytest.fail("these tests mount real file systems: run them as root")


@pytest.fixture
def watches() -> list[VolumeWatch]:
    """Every watch of the test."""
    return []


@pytest.fixture
def taken_down(watches: list[VolumeWatch]) -> Iterator[ExitStack]:
    """Actions on this stack are undone at the end, in reverse order; then no process may be left."""
    with ExitStack() as stack:
        yield stack
    eventually(lambda: all(watch.sampler.abandoned == 0 for watch in watches))


def _unmount_all(mount_point: Path) -> None:
    """Unmount whatever is stacked there; by the mount table, because a dead disk hides from stat."""
    table = parse_mountinfo(Path("/proc/self/mountinfo").read_text())
    for mount in table.mounts:
        if mount.mount_point == str(mount_point):
            run("umount", "-l", mount_point)


@pytest.fixture
def make_disk(tmp_path: Path, taken_down: ExitStack) -> MakeDisk:
    def make(name: str, fs_type: str = "ext4", *, mkfs: tuple[str, ...] = (), options: str = "rw") -> Disk:
        image, mount_point = tmp_path / f"{name}.img", tmp_path / "data" / name
        mount_point.mkdir(parents=True)
        with image.open("wb") as file:
            file.truncate(_SMALLEST_MIB[fs_type] << 20)
        run(f"mkfs.{fs_type}", "-q", *mkfs, image)
        device = run("losetup", "--find", "--show", image)
        taken_down.callback(run, "losetup", "--detach", device)
        run("mount", "-o", options, device, mount_point)
        taken_down.callback(_unmount_all, mount_point)
        return Disk(mount_point, device, run("blkid", "-o", "value", "-s", "UUID", "-p", device))

    return make


class HangingDisk:
    """A mounted FUSE file system that can be made to hang."""

    def __init__(self, mount_point: Path, *arguments: str) -> None:
        self.mount_point = mount_point
        mount_point.mkdir(parents=True)
        program = Path(__file__).with_name("hanging_filesystem.py")
        self._server = subprocess.Popen(
            [sys.executable, program, mount_point, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n"

    def hang(self, line: bytes = b"hang\n") -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(line)
        self._server.stdin.flush()

    def hang_when_listed(self) -> None:
        """Change, and never answer who asks for the entries."""
        self.hang(b"list\n")

    def hang_when_opened(self) -> None:
        """Never answer who opens its directory or asks for its mode."""
        self.hang(b"dead\n")

    def slow(self, seconds: float) -> None:
        """Answer who asks for statistics this much later."""
        self.hang(f"slow {seconds}\n".encode())

    def leave_free(self, blocks: int) -> None:
        """Have this many of 1,000 blocks available."""
        self.hang(f"free {blocks}\n".encode())

    def fail(self, what: str) -> None:
        """Fail with EIO who asks for ``statistics``, ``entries``, or ``nothing``."""
        self.hang(f"error {what}\n".encode())

    def die(self) -> None:
        """End the server: the kernel fails every request that waits for it."""
        self._server.kill()
        self._server.communicate()

    def take_down(self) -> None:
        self.die()
        _unmount_all(self.mount_point)


@pytest.fixture
def make_hanging_disk(tmp_path: Path, taken_down: ExitStack) -> Callable[..., HangingDisk]:
    def make(name: str, *arguments: str) -> HangingDisk:
        disk = HangingDisk(tmp_path / "data" / name, *arguments)
        taken_down.callback(disk.take_down)
        return disk

    return make


class Watch:
    """A VolumeWatch on some log dirs, with short cuts for tests."""

    def __init__(self, watch: VolumeWatch) -> None:
        self.watch = watch

    @property
    def volumes(self) -> tuple[VolumeObservation, ...]:
        return self.watch.observe().volumes

    @property
    def volume(self) -> VolumeObservation:
        (volume,) = self.volumes
        return volume

    def reason(self, index: int = 0) -> str:
        return self.volumes[index].reason or ""


class MakeWatch(Protocol):
    def __call__(
        self,
        *log_dirs: Path,
        remembered: Mapping[str, VolumeIdentity] | None = None,
        ready: bool = True,
        limits: LimitsSection | None = None,
        bound: Bound | None = None,
    ) -> Watch: ...


@pytest.fixture
def make_watch(taken_down: ExitStack, watches: list[VolumeWatch]) -> MakeWatch:
    def make(
        *log_dirs: Path,
        remembered: Mapping[str, VolumeIdentity] | None = None,
        ready: bool = True,
        limits: LimitsSection | None = None,
        bound: Bound | None = None,
    ) -> Watch:
        text = f"node.id=1\nlog.dirs={','.join(map(str, log_dirs))}\n"
        watch = VolumeWatch(
            parse_broker_properties(text.encode(), Path("server.properties")),
            limits=limits,
            remembered=remembered,
            bound=bound,
            interval_seconds=0.05,
            hang_seconds=HANG_SECONDS,
        )
        watch.start()
        watches.append(watch)
        taken_down.callback(watch.close)
        assert not ready or watch.wait_for_samples(60)
        return Watch(watch)

    return make
