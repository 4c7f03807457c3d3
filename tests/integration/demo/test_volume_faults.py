"""The faults of a volume on loopback: it hangs for a while, or fails, and is mounted again."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec, make_loop_volume
from testbed.loopback.workspace import Workspace

HANG_SECONDS = 1.0


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[LoopVolume]:
    with Workspace(tmp_path) as workspace:
        yield make_loop_volume(
            VolumeSpec(16 * MIB), workspace.path / "disk.img", workspace.path / "mounts" / "disk"
        )


def test_a_volume_that_hangs_lets_a_write_wait_and_a_look_at_it_pass(volume: LoopVolume) -> None:
    file = volume.mount_point / "file"
    file.write_bytes(b"before")
    begun = time.monotonic()
    hanging = threading.Thread(target=volume.hang, args=(HANG_SECONDS,))
    hanging.start()
    waited = 0.0
    while hanging.is_alive():
        began_to_write = time.monotonic()
        file.write_bytes(b"during")
        waited = max(waited, time.monotonic() - began_to_write)
        assert volume.capacity_bytes() > 0
    hanging.join()
    assert time.monotonic() - begun >= HANG_SECONDS
    assert waited > HANG_SECONDS / 4
    assert file.read_bytes() == b"during"


def test_a_volume_that_is_shut_down_fails_until_it_is_mounted_again_with_what_was_synced(
    volume: LoopVolume,
) -> None:
    kept, lost = volume.mount_point / "kept", volume.mount_point / "lost"
    with kept.open("wb") as file:
        file.write(b"content")
        file.flush()
        os.fsync(file.fileno())
    directory = os.open(volume.mount_point, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)
    lost.write_bytes(b"content")
    volume.shut_down()
    with pytest.raises(OSError) as failed:
        lost.write_bytes(b"more")
    assert failed.value.errno == errno.EIO
    volume.mount_again()
    assert kept.read_bytes() == b"content"
    assert not lost.exists() or lost.read_bytes() != b"content"
    kept.write_bytes(b"more")
