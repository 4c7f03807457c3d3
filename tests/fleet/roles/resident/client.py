"""The Python of the plays' modules: has the server run what it gets, with its own files and environment.

It imports little, because it starts for each task. Python itself replaces it for options, and for users who
cannot connect to the server.
"""

import _socket
import marshal
import os
import sys

SERVER, PYTHON = sys.argv[1:3]
ARGUMENTS = sys.argv[3:]

connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
try:
    if "-" in (each[:1] for each in ARGUMENTS[:1]):
        raise OSError("an option")
    connection.connect(SERVER)
except OSError:
    os.execv(PYTHON, [PYTHON, *ARGUMENTS])
umask = os.umask(0o077)
os.umask(umask)
given = marshal.dumps((ARGUMENTS, os.getcwd(), dict(os.environb), umask))  # noqa: PTH109
files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
connection.sendmsg([len(given).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
connection.sendall(given)
os._exit(int.from_bytes(connection.recv(1) or b"\1", "big"))
