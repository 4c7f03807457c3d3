"""Volumes of hosts: file systems in files, mounted from outside, and the faults of disks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from testbed.hosts.commands import run
from testbed.hosts.spec import VolumeSpec


@dataclass(frozen=True)
class Volume:
    """A volume of a host. `mount_point` is where this machine sees it; the host sees it at `spec.path`."""

    spec: VolumeSpec
    image: Path
    mount_point: Path

    @property
    def path(self) -> str:
        """Where the host sees it."""
        return self.spec.path

    def make(self) -> None:
        """Make the file system and mount it."""
        self.image.parent.mkdir(parents=True, exist_ok=True)
        with self.image.open("wb") as file:
            file.truncate(self.spec.size_mebibytes * 2**20)
        if self.spec.filesystem == "ext4":
            # Nothing is left to be done in the background, which would blur measurements.
            options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
            run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", options, self.image)
        else:
            run("mkfs.xfs", "-q", "-K", self.image)
        self.mount_point.mkdir(parents=True, exist_ok=True)
        self.attach()

    def attach(self) -> None:
        """Mount it (again)."""
        run("mount", "-t", self.spec.filesystem, "-o", "loop,noatime", self.image, self.mount_point)

    def detach(self) -> None:
        """Take it away under the feet of its users. The directory stays, on the root file system."""
        run("umount", "--lazy", self.mount_point)

    def shut_down(self) -> None:
        """Let each access fail with EIO from now on; statvfs may still answer. A new mount ends it."""
        run("xfs_io", "-x", "-c", "shutdown", self.mount_point)

    def break_read_only(self) -> None:
        """Let the kernel find an error, and make the file system read-only for it. ext4 alone does so."""
        if self.spec.filesystem != "ext4":
            raise ValueError(
                f"{self.path}: only ext4 turns read-only on an error, this is {self.spec.filesystem}"
            )
        run("mount", "-o", "remount,errors=remount-ro", self.mount_point)
        (Path("/sys/fs/ext4") / Path(self.device()).name / "trigger_fs_error").write_text(
            "injected by a test"
        )

    def remount_read_only(self) -> None:
        """As an administrator would; refused while files are open for writing."""
        run("mount", "-o", "remount,ro", self.mount_point)

    def remount_writable(self) -> None:
        """Undo `remount_read_only`."""
        run("mount", "-o", "remount,rw", self.mount_point)

    def device(self) -> str:
        """The loop device behind it."""
        return run("findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", self.mount_point).strip()

    def available_bytes(self) -> int:
        """The space that an ordinary user may still write."""
        status = os.statvfs(self.mount_point)
        return status.f_bavail * status.f_frsize

    def capacity_bytes(self) -> int:
        """Size of the file system."""
        status = os.statvfs(self.mount_point)
        return status.f_blocks * status.f_frsize

    def fill(self, leave_bytes: int, name: str = "ballast") -> Path:
        """Allocate a file so that `leave_bytes` stay free; returns it (unlink to undo).

        Raises:
            ValueError: less than that is free already.
        """
        size_bytes = self.available_bytes() - leave_bytes
        if size_bytes <= 0:
            raise ValueError(f"leave_bytes: {self.path} has {self.available_bytes()} bytes free")
        ballast = self.mount_point / name
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)
        return ballast
