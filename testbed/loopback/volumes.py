"""Real volumes of a wanted size: ext4 in a sparse file, loop-mounted. Needs root."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20
SMALLEST_VOLUME_BYTES = 16 * MIB
_LOOP_MAJOR = 7
_REPAIRED = 1  # e2fsck: errors were corrected
_BUSY_SECONDS = 30.0
_LOOP_DEVICES_LOCK = Path("/run/lock/kquota-loop-devices.lock")


class VolumeUnavailable(Exception):
    """A loop-mounted volume could not be made; the message has the reason."""


@dataclass(frozen=True)
class VolumeSpec:
    """A volume to make: size of the file system's image, and the share reserved for root (ext4 `-m`).

    ``inodes`` is their number (ext4 `-N`), None for ext4's own choice.
    """

    size_bytes: int
    reserved_percentage: int = 0
    inodes: int | None = None

    def __post_init__(self) -> None:
        if self.size_bytes < SMALLEST_VOLUME_BYTES:
            raise ValueError(
                f"size_bytes: {self.size_bytes} is below the smallest ext4, {SMALLEST_VOLUME_BYTES}"
            )


@dataclass(frozen=True)
class LoopVolume:
    """A mounted ext4 of its own. It goes with the workspace it lies in."""

    image: Path
    mount_point: Path

    @property
    def device(self) -> str:
        """The loop device behind the mount, e.g. `/dev/loop4`."""
        return _run(
            "findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", str(self.mount_point)
        ).strip()

    def capacity_bytes(self) -> int:
        """The size of the file system by statvfs."""
        status = os.statvfs(self.mount_point)
        return status.f_blocks * status.f_frsize

    def consumed_bytes(self) -> int:
        """Capacity less what an ordinary user may still write."""
        status = os.statvfs(self.mount_point)
        return (status.f_blocks - status.f_bavail) * status.f_frsize

    def unmount(self) -> None:
        """Take it away, as a broken disk; what was written stays in the image.

        Raises:
            VolumeUnavailable: a process still uses it.
        """
        _run("umount", str(self.mount_point))

    def repair(self) -> None:
        """Check the unmounted file system, repair what is wrong with it, and mount it again.

        Raises:
            VolumeUnavailable: it can't be repaired.
        """
        checked = subprocess.run(
            ["e2fsck", "-p", str(self.image)], check=False, capture_output=True, text=True
        )
        if checked.returncode & ~_REPAIRED:
            raise VolumeUnavailable(f"e2fsck -p {self.image}: {checked.stdout}{checked.stderr}")
        _mount(self.image, self.mount_point)

    def fill(self, leave_bytes: int, name: str = "ballast") -> Path:
        """Allocate a file near the log dir so that `leave_bytes` stay free; returns it (unlink to undo)."""
        status = os.statvfs(self.mount_point)
        size_bytes = status.f_bavail * status.f_frsize - leave_bytes
        if size_bytes <= 0:
            raise ValueError(
                f"leave_bytes: {self.mount_point} has {status.f_bavail * status.f_frsize} bytes free"
            )
        ballast = self.mount_point / name
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        return ballast

    def hang(self, seconds: float) -> None:
        """Have each write wait for this long, as on a disk that does not answer; reading goes on.

        Raises:
            VolumeUnavailable: the file system can't be frozen.
        """
        # A process that waits can't even be killed: another one ends it, whatever becomes of this one.
        freeze = 'fsfreeze --freeze "$1" && sleep "$2"; fsfreeze --unfreeze "$1"'
        command = ["sh", "-c", freeze, "sh", str(self.mount_point), str(seconds)]
        if code := subprocess.Popen(command, start_new_session=True).wait():
            raise VolumeUnavailable(f"fsfreeze {self.mount_point}: exit {code}")

    def shut_down(self) -> None:
        """Let each access fail with EIO from now on, without what was not yet synced; see `mount_again`."""
        _run("xfs_io", "-x", "-c", "shutdown", str(self.mount_point))

    def mount_again(self) -> None:
        """Mount it with what the disk kept.

        Raises:
            VolumeUnavailable: a process goes on using it.
        """
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self.unmount()
                break
            except VolumeUnavailable:  # an agent looks at it
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        _mount(self.image, self.mount_point)


def require_loop_volumes() -> None:
    """See that loop-mounted volumes can be made here.

    Raises:
        VolumeUnavailable: not root, or a tool is missing.
    """
    if os.geteuid() != 0:
        raise VolumeUnavailable(
            "size-limited volumes are loop mounts, which need root: run it as root or with sudo"
        )
    for tool in ("mkfs.ext4", "mount", "umount", "findmnt", "losetup"):
        if shutil.which(tool) is None:
            raise VolumeUnavailable(f"{tool} is missing: apt-get install e2fsprogs util-linux mount")


def make_loop_volume(spec: VolumeSpec, image: Path, mount_point: Path) -> LoopVolume:
    """Make the image, an ext4 in it, and mount that.

    Raises:
        VolumeUnavailable: not root, a tool is missing, or the kernel refuses.
    """
    require_loop_volumes()
    with image.open("wb") as file:
        file.truncate(spec.size_bytes)
    # No lazy initialisation: a kernel thread that goes on writing would blur measurements.
    options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    inodes = () if spec.inodes is None else ("-N", str(spec.inodes))
    reserved = str(spec.reserved_percentage)
    _run("mkfs.ext4", "-q", "-F", "-m", reserved, *inodes, "-E", options, str(image))
    mount_point.mkdir(parents=True)
    _mount(image, mount_point)
    return LoopVolume(image=image, mount_point=mount_point)


def _mount(image: Path, mount_point: Path) -> None:
    _LOOP_DEVICES_LOCK.parent.mkdir(parents=True, exist_ok=True)
    # Held until the free device is in use: another process would find the same one.
    with _LOOP_DEVICES_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _ensure_free_loop_device()
        # `loop` makes mount(8) attach the image with autoclear: unmounting detaches it, nothing is left to
        # forget.
        _run("mount", "-t", "ext4", "-o", "loop,noatime", str(image), str(mount_point))


def _ensure_free_loop_device() -> None:
    """Create the node of the next free loop device where no udev does (containers)."""
    device = Path(_run("losetup", "--find").strip())
    if not device.exists() and (number := re.fullmatch(r"/dev/loop(\d+)", str(device))):
        os.mknod(device, 0o660 | 0o060000, os.makedev(_LOOP_MAJOR, int(number[1])))


def _run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise VolumeUnavailable(f"{' '.join(command)}: {done.stderr.strip() or f'exit {done.returncode}'}")
    return done.stdout
