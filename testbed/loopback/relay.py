"""A program that relays connections, as bad as asked: python relay.py [--loopback] [--control PATH] ROUTE …

A route is LISTEN=CONNECT, and an address tcp:PORT of 127.0.0.1, or unix:PATH. With --loopback it first brings
up the loopback device of the network it is in. Stopped (SIGSTOP) it is a network that swallows everything;
afterwards all goes on.

Faults are ordered through the socket --control, as a line of JSON: ``{"faults": {KEY: {…}}}`` replaces all
faults, and ``{"reset": [PORT, …]}`` resets the connections of these routes. The answer is a line. A key is
the number at the end of a route's first address, a slash, and ``forth`` (from who connects) or ``back``. Of a
route without a fault every byte goes on at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import random
import re
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1
_CHUNK_BYTES, _CHUNKS = 16_384, 16
_LOOK_SECONDS = 0.02
_DIGITS_AT_END = re.compile(r"\d+$")


@dataclass(frozen=True)
class Fault:
    """A fault of one direction; the order of bytes is kept.

    ``delay_seconds`` and up to ``jitter_seconds`` more or less pass before they go on; there are
    ``bytes_per_second`` at most (0: no limit); while ``held`` none goes on; an end of the stream goes on
    after ``close_seconds``.
    """

    delay_seconds: float = 0.0
    jitter_seconds: float = 0.0
    bytes_per_second: float = 0.0
    held: bool = False
    close_seconds: float = 0.0


@dataclass
class Faults:
    """Those that are ordered, and the connections there are, by port."""

    of: dict[str, Fault] = field(default_factory=dict)
    connections: set[tuple[str, asyncio.StreamWriter]] = field(default_factory=set)

    def now(self, key: str) -> Fault:
        """Return the present one."""
        return self.of.get(key, Fault())

    def obey(self, order: dict[str, object]) -> None:
        """Take an order; faults of an unknown form end the program, whose test then fails."""
        if isinstance(faults := order.get("faults"), dict):
            self.of = {key: Fault(**values) for key, values in faults.items()}
        if isinstance(ports := order.get("reset"), list):
            for port, writer in list(self.connections):
                if port in ports:
                    reset(writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Abort a connection; its other end learns of it by a reset, where the address has such a thing."""
    one: socket.socket | None = writer.get_extra_info("socket")
    if one is not None and one.family == socket.AF_INET:
        with contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, fault: Callable[[], Fault]) -> None:
    """Carry one direction to its end.

    Raises:
        OSError: one of both ends was reset.
    """
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS)

    async def take() -> None:
        while data := await source.read(_CHUNK_BYTES):
            await chunks.put((loop.time(), data))
        await chunks.put((loop.time(), b""))

    async def give() -> None:
        due = 0.0
        while True:
            came_at, data = await chunks.get()
            now = fault()
            jitter = random.uniform(-now.jitter_seconds, now.jitter_seconds)
            due = max(due, came_at + now.delay_seconds + jitter)
            await asyncio.sleep(due - loop.time())
            while fault().held:
                await asyncio.sleep(_LOOK_SECONDS)
            if not data:
                await asyncio.sleep(fault().close_seconds)
                sink.write_eof()
                return
            if fault().bytes_per_second:
                await asyncio.sleep(len(data) / fault().bytes_per_second)
            sink.write(data)
            await sink.drain()

    await both(take(), give())


async def both(one: Awaitable[None], other: Awaitable[None]) -> None:
    """Run both to their ends; an error of one ends the other."""
    tasks = [asyncio.ensure_future(one), asyncio.ensure_future(other)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def connect(there: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to an address."""
    kind, _, place = there.partition(":")
    if kind == "unix":
        return await asyncio.open_unix_connection(place)
    return await asyncio.open_connection("127.0.0.1", int(place))


async def listen(here: str, there: str, faults: Faults) -> asyncio.Server:
    """Serve a route."""
    found = _DIGITS_AT_END.search(here)
    port = found[0] if found else here

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await connect(there)
        except OSError:  # no listener: as a refused connection
            writer.transport.abort()
            return
        ends = {(port, writer), (port, far_writer)}
        faults.connections |= ends
        try:
            await both(
                pump(reader, far_writer, lambda: faults.now(f"{port}/forth")),
                pump(far_reader, writer, lambda: faults.now(f"{port}/back")),
            )
        except OSError:
            for _, end in ends:
                reset(end)
        finally:
            faults.connections -= ends
            for _, end in ends:
                end.close()

    kind, _, place = here.partition(":")
    if kind == "unix":
        return await asyncio.start_unix_server(accepted, place)
    # a port that is reserved, but not listened on, can be bound in addition to the reservation
    return await asyncio.start_server(accepted, "127.0.0.1", int(place), reuse_address=True)


async def listen_for_orders(path: str, faults: Faults) -> asyncio.Server:
    """Serve the control socket."""

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            faults.obey(json.loads(line))
            writer.write(b"done\n")
            await writer.drain()
        writer.close()

    return await asyncio.start_unix_server(accepted, path)


def bring_up_loopback() -> None:
    """Bring up lo, as a new network namespace needs."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


async def main(routes: list[str], control: str | None) -> None:
    """Relay until killed."""
    faults = Faults()
    servers = []
    for route in routes:
        here, _, there = route.partition("=")
        servers.append(await listen(here, there, faults))
    if control is not None:
        servers.append(await listen_for_orders(control, faults))
    print("relaying", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    arguments, path = sys.argv[1:], None
    if arguments[:1] == ["--loopback"]:
        bring_up_loopback()
        arguments = arguments[1:]
    if arguments[:1] == ["--control"]:
        path, arguments = arguments[1], arguments[2:]
    asyncio.run(main(arguments, path))
