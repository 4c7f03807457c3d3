"""A file system of one directory that forgets in a power cut what was not synced, as a disk may.

Run as ``python forgetful_filesystem.py MOUNT_POINT`` by root; it mounts itself by FUSE and prints ``ready``.
After the line ``cut SEED`` on its stdin it prints ``cut``, and is as after a power cut: of each file the
content of its last fsync stays, or a part of what was written since; of the directory what it was at its own
last fsync, and by chance the first few changes since. With the seed ``-`` nothing else stays. Everything is
in memory: it ends with the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import select
import stat
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

# include/uapi/linux/fuse.h
LOOKUP, FORGET, GETATTR, SETATTR, UNLINK, RENAME, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC = (
    *(1, 2, 3, 4, 10, 12),
    *(14, 15, 16, 17, 18, 20),
)
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, CREATE, INTERRUPT, BATCH_FORGET, RENAME2 = (
    *(25, 26, 27, 28, 29, 30, 35),
    *(36, 42, 45),
)
IN_HEADER, OUT_HEADER = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
WITHOUT_ANSWER = {FORGET, INTERRUPT, BATCH_FORGET}
ROOT = 1
_MODE, _UID, _GID, _SIZE = 1, 2, 4, 8
_DIRECT_IO = 1

Names = dict[bytes, int]


@dataclass
class Node:
    """A file: its content now, and that of its last fsync."""

    mode: int
    uid: int = 0
    gid: int = 0
    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""


class Refused(Exception):
    """A request that fails with this errno."""


class ForgetfulDirectory:
    """The files and their names."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {ROOT: Node(stat.S_IFDIR | 0o755)}
        self.names: Names = {}
        self.synced_names: Names = {}
        self.changes: list[Names] = []
        self.next_id = ROOT + 1

    def change(self, names: Names) -> None:
        self.names = names
        self.changes.append(names)

    def cut(self, seed: str) -> None:
        """Be as after a power cut."""
        chance = random.Random(seed)
        kept = 0 if seed == "-" else chance.randint(0, len(self.changes))
        self.names = self.changes[kept - 1] if kept else self.synced_names
        for node in self.nodes.values():
            if seed == "-" or bytes(node.content) == node.synced or chance.random() < 1 / 3:
                node.content = bytearray(node.synced)
            else:
                node.content = node.content[: chance.randint(0, len(node.content))]
            node.synced = bytes(node.content)
        self.synced_names, self.changes = self.names, []

    def answer(self, opcode: int, of: int, who: tuple[int, int], body: bytes) -> bytes:
        """Return the body of an answer.

        Raises:
            Refused: with its errno.
        """
        handlers: dict[int, Callable[[], bytes]] = {
            INIT: lambda: struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0),
            STATFS: lambda: struct.pack("<5Q4I24x", 1000, 900, 900, 1000, 900, 4096, 255, 4096, 0),
            LOOKUP: lambda: self.entry(self.named(body.rstrip(b"\0"))),
            GETATTR: lambda: struct.pack("<QII", 0, 0, 0) + self.attributes(of),
            SETATTR: lambda: self.set_attributes(of, body),
            CREATE: lambda: self.create(body, who),
            OPEN: lambda: struct.pack("<QII", 0, _DIRECT_IO, 0),
            OPENDIR: lambda: struct.pack("<QII", 0, 0, 0),
            READ: lambda: self.read(of, body),
            WRITE: lambda: self.write(of, body),
            UNLINK: lambda: self.unlink(body.rstrip(b"\0")),
            RENAME: lambda: self.rename(body[8:]),
            RENAME2: lambda: self.rename(body[16:]),
            READDIR: lambda: self.entries(body),
            FSYNC: lambda: self.sync(of),
            FSYNCDIR: self.sync_names,
        }
        if opcode in (FLUSH, RELEASE, RELEASEDIR):
            return b""
        if opcode not in handlers:
            raise Refused(errno.ENOSYS)
        return handlers[opcode]()

    def named(self, name: bytes) -> int:
        if name not in self.names:
            raise Refused(errno.ENOENT)
        return self.names[name]

    def attributes(self, of: int) -> bytes:
        node = self.nodes[of]
        sizes = of, len(node.content), 0, 0, 0, 0
        return struct.pack("<6Q10I", *sizes, 0, 0, 0, node.mode, 1, node.uid, node.gid, 0, 4096, 0)

    def entry(self, of: int) -> bytes:
        return struct.pack("<4Q2I", of, 0, 0, 0, 0, 0) + self.attributes(of)

    def set_attributes(self, of: int, body: bytes) -> bytes:
        node, valid = self.nodes[of], struct.unpack_from("<I", body)[0]
        if valid & _SIZE:
            size = struct.unpack_from("<Q", body, 16)[0]
            node.content = node.content[:size].ljust(size, b"\0")
        if valid & _MODE:
            node.mode = struct.unpack_from("<I", body, 68)[0]
        if valid & _UID:
            node.uid = struct.unpack_from("<I", body, 76)[0]
        if valid & _GID:
            node.gid = struct.unpack_from("<I", body, 80)[0]
        return struct.pack("<QII", 0, 0, 0) + self.attributes(of)

    def create(self, body: bytes, who: tuple[int, int]) -> bytes:
        _, mode, umask, _ = struct.unpack_from("<4I", body)
        made, self.next_id = self.next_id, self.next_id + 1
        self.nodes[made] = Node(mode & ~umask, *who)
        self.change({**self.names, body[16:].rstrip(b"\0"): made})
        return self.entry(made) + struct.pack("<QII", 0, _DIRECT_IO, 0)

    def read(self, of: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self.nodes[of].content[offset : offset + size])

    def write(self, of: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        content = self.nodes[of].content
        content.extend(bytes(max(0, offset - len(content))))
        content[offset : offset + size] = body[40 : 40 + size]
        return struct.pack("<II", size, 0)

    def unlink(self, name: bytes) -> bytes:
        self.named(name)
        self.change({known: of for known, of in self.names.items() if known != name})
        return b""

    def rename(self, names: bytes) -> bytes:
        old, new = names.split(b"\0")[:2]
        of = self.named(old)
        self.change({**{known: one for known, one in self.names.items() if known != old}, new: of})
        return b""

    def entries(self, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        found = b""
        for number, (name, of) in enumerate(sorted(self.names.items()), 1):
            if number > offset:
                one = struct.pack("<QQII", of, number, len(name), stat.S_IFREG >> 12) + name
                one += bytes(-len(one) % 8)
                if len(found) + len(one) > size:
                    break
                found += one
        return found

    def sync(self, of: int) -> bytes:
        self.nodes[of].synced = bytes(self.nodes[of].content)
        return b""

    def sync_names(self) -> bytes:
        self.synced_names, self.changes = self.names, []
        return b""


def serve(device: int) -> None:
    directory = ForgetfulDirectory()
    while True:
        for source in select.select([device, 0], [], [])[0]:
            if source == 0:
                if not (line := os.read(0, 100)):
                    return
                directory.cut(line.decode().split()[1])
                print("cut", flush=True)
                continue
            request = os.read(device, 1 << 17)
            _, opcode, unique, of, uid, gid, _, _ = IN_HEADER.unpack_from(request)
            if opcode in WITHOUT_ANSWER:
                continue
            try:
                body = directory.answer(opcode, of, (uid, gid), request[IN_HEADER.size :])
            except Refused as refused:
                os.write(device, OUT_HEADER.pack(OUT_HEADER.size, -refused.args[0], unique))
            else:
                os.write(device, OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique) + body)


def main() -> None:
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"forgetful", os.fsencode(sys.argv[1]), b"fuse", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    serve(device)


if __name__ == "__main__":
    main()
