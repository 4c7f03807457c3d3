"""Log under a journal socket of our own; run in a mount namespace where /run can be covered.

Standard error is connected to the socket that JOURNAL_STREAM announces, as systemd does it; the datagrams
that arrive at the native socket are printed.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

SOCKET = Path("/run/systemd/journal/socket")
CODE = """
import logging, os
from kquota.journal.journal import Entry, Journal, MessageId
journal = Journal(os.environ)
assert journal.to_journald
journal.configure("INFO", broker_id=3, secrets=["hunter2"])
fields = {"KQUOTA_STATE": "PAUSE", "KQUOTA_FACTOR": "0.000000", "KQUOTA_REASON": "a volume is full"}
journal.write([Entry(logging.WARNING, "PAUSE: the password is hunter2", MessageId.STATE_CHANGED, fields)])
journal.write([Entry(logging.DEBUG, "unchanged", MessageId.CYCLE)])
try:
    raise RuntimeError("it was hunter2")
except RuntimeError:
    logging.getLogger("some.library").error("failed with %s", "hunter2", exc_info=True)
journal.close()
"""


def main() -> None:
    subprocess.run(["mount", "-t", "tmpfs", "kquota-test", "/run"], check=True)
    SOCKET.parent.mkdir(parents=True)
    ours, stream = socket.socketpair()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as native, ours, stream:
        native.bind(str(SOCKET))
        native.settimeout(30)
        status = os.fstat(stream.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        subprocess.run([sys.executable, "-c", CODE], env=environ, stderr=stream, check=True)
        native.setblocking(False)
        try:
            while True:
                sys.stdout.buffer.write(native.recv(65_536) + b"\n===\n")
        except BlockingIOError:
            pass


if __name__ == "__main__":
    main()
