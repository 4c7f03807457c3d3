"""A program that relays connections: python relay.py [--loopback] LISTEN=CONNECT …

An address is tcp:PORT of 127.0.0.1, or unix:PATH. With --loopback it first brings up the loopback device of
the network it is in. Stopped (SIGSTOP) it is a network that swallows everything; afterwards all goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import socket
import struct
import sys

_SIOCSIFFLAGS = 0x8914
_IFF_UP = 0x1


def bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as anything:
        fcntl.ioctl(anything, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _IFF_UP))


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()
        sink.write_eof()


async def listen(here: str, there: str) -> asyncio.Server:
    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            kind, _, place = there.partition(":")
            connecting = (
                asyncio.open_unix_connection(place)
                if kind == "unix"
                else asyncio.open_connection("127.0.0.1", int(place))
            )
            far_reader, far_writer = await connecting
        except OSError:  # no listener: as a refused connection
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        for one in (writer, far_writer):
            one.close()

    kind, _, place = here.partition(":")
    if kind == "unix":
        return await asyncio.start_unix_server(accepted, place)
    # a port that is reserved, but not listened on, can be bound in addition to the reservation
    return await asyncio.start_server(accepted, "127.0.0.1", int(place), reuse_address=True)


async def main(routes: list[str]) -> None:
    servers = [await listen(*route.split("=", 1)) for route in routes]
    print("relaying", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--loopback"]:
        bring_up_loopback()
        arguments = arguments[1:]
    asyncio.run(main(arguments))
