"""A Python that has imported what each module imports, and forks a process for each that a client brings.

server.py SOCKET: it prints a line as soon as clients can connect, and ends at the end of its standard input.
"""

import atexit
import gc
import importlib
import marshal
import os
import select
import signal
import socket
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

IMPORTED = ("ansible.module_utils._internal._ansiballz._loader", "runpy", "tempfile", "zipfile")


class Packed:
    """The folders of Ansible's package: where this Python has it, and in what a module was packed with."""

    def __init__(self, here: Iterable[str]) -> None:
        self._here = [*here]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._here, *(f"{path}/ansible" for path in sys.path if path.endswith(".zip"))])


def prepare(connection: socket.socket) -> list[str]:
    """Take over the client's files, directory, environment and mask; return its arguments."""
    length, files, *_ = socket.recv_fds(connection, 4, 3)
    given = b""
    while len(given) < int.from_bytes(length, "big"):
        given += connection.recv(65536)
    arguments, folder, environment, umask = marshal.loads(given)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.umask(umask)
    os.environ.clear()
    os.environb.update(environment)
    return list(arguments)


def run(arguments: list[str]) -> int:
    """Run the script of the arguments or of standard input as Python does; return its exit status."""
    source = Path(arguments[0]).read_bytes() if arguments else sys.stdin.buffer.read()
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    sys.argv = arguments or [""]
    status = 0
    try:
        exec(compile(source, arguments[0] if arguments else "<stdin>", "exec"), main.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def serve(path: str) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    # A module that is not Ansible's own is in what was packed alone.
    ansible = sys.modules["ansible"]
    ansible.__path__ = Packed(ansible.__path__)  # type: ignore[assignment]
    gc.freeze()  # so that forked processes share these pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listener.close()
                connection.sendall(bytes([run(prepare(connection)) & 0xFF]))
                os._exit(0)
            connection.close()


if __name__ == "__main__":
    serve(sys.argv[1])
