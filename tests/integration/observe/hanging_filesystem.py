"""A FUSE file system that answers until it is made to hang: the disk that never comes back.

Run as ``python hanging_filesystem.py MOUNT_POINT [hang]`` by root; it mounts itself, prints ``ready``, and
from the line ``hang`` on its stdin on (with the argument ``hang``: from the start) reads requests for
statistics without ever answering them. From the line ``list`` on its directory has changed, and it does the
same with requests for its entries; from the line ``dead`` on, with those that open it. After the line ``slow
SECONDS`` it answers requests for statistics that much later, after ``free BLOCKS`` with as many available;
after ``error statistics``, ``error entries`` or ``error nothing`` these fail with EIO. When it ends, the
kernel fails what waits for it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import sys
import time

# include/uapi/linux/fuse.h
LOOKUP, FORGET, GETATTR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT = (
    1,
    2,
    3,
    17,
    26,
    27,
    28,
    29,
    36,
)
IN_HEADER = struct.Struct("<IIQQIIII")
OUT_HEADER = struct.Struct("<IiQ")
BLOCKS, AVAILABLE_BLOCKS, BLOCK_BYTES = 1000, 600, 4096
FAILING = {
    "statistics": frozenset({STATFS}),
    "entries": frozenset({OPENDIR, READDIR}),
    "nothing": frozenset[int](),
}


def answer(opcode: int, changed_at: int, available_blocks: int) -> bytes | int | None:
    """Return the body of an answer, an errno, or None for a request that wants no answer."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0)
    if opcode == GETATTR:
        times_and_mode = (0, 0, 0, stat.S_IFDIR | 0o755, 2, 0, 0, 0, BLOCK_BYTES, 0)
        return struct.pack("<QII", 0, 0, 0) + struct.pack(
            "<6Q10I", 1, 0, 0, 0, changed_at, 0, *times_and_mode
        )
    if opcode == STATFS:
        figures = (BLOCKS, available_blocks, available_blocks, 0, 0)
        return struct.pack("<5Q4I24x", *figures, BLOCK_BYTES, 255, BLOCK_BYTES, 0)
    if opcode == OPENDIR:
        return struct.pack("<QII", 0, 0, 0)
    if opcode in (READDIR, RELEASEDIR):
        return b""
    if opcode in (FORGET, INTERRUPT):
        return None
    return errno.ENOENT if opcode == LOOKUP else errno.ENOSYS


def serve(device: int, hanging: bool) -> None:
    sources = [device, 0]
    unanswered = {STATFS} if hanging else set()
    slow_seconds, available_blocks, failing = 0.0, AVAILABLE_BLOCKS, frozenset[int]()
    late: list[tuple[float, bytes]] = []
    while True:
        wait_seconds = max(0.0, late[0][0] - time.monotonic()) if late else None
        for source in select.select(sources, [], [], wait_seconds)[0]:
            if source == 0:
                if not (line := os.read(0, 100)):
                    sources = [device]
                word, _, value = line.decode().strip().partition(" ")
                wanted = {"hang": {STATFS}, "list": {READDIR}, "dead": {GETATTR, OPENDIR}}
                unanswered |= wanted.get(word, set())
                slow_seconds = float(value) if word == "slow" else slow_seconds
                available_blocks = int(value) if word == "free" else available_blocks
                failing = FAILING[value] if word == "error" else failing
                continue
            request = os.read(device, 1 << 17)
            _, opcode, unique, *_ = IN_HEADER.unpack_from(request)
            body = None if opcode in unanswered else answer(opcode, len(unanswered), available_blocks)
            if opcode in failing:
                body = errno.EIO
            if isinstance(body, int):
                os.write(device, OUT_HEADER.pack(OUT_HEADER.size, -body, unique))
            elif body is not None:
                reply = OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique) + body
                if opcode == STATFS and slow_seconds:
                    late.append((time.monotonic() + slow_seconds, reply))
                else:
                    os.write(device, reply)
        while late and late[0][0] <= time.monotonic():
            os.write(device, late.pop(0)[1])


def main() -> None:
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"hanging", os.fsencode(sys.argv[1]), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    serve(device, "hang" in sys.argv[2:])


if __name__ == "__main__":
    main()
