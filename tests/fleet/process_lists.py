"""Looks while plays run at what all users see of processes: arguments, and the environments of users.

``python -m tests.fleet.process_lists COMMAND ...`` runs a command, such as Molecule, and fails if a secret of
the scenarios was seen. Hosts are on this machine, so that their processes are seen, too.

The kernel reports each process that runs another program (the process connector of netlink, which needs
root). A process of less than a millisecond may have ended before it is looked at.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECRETS_FILE = Path(__file__).resolve().parents[2] / "extensions/molecule/shared/group_vars/all.yml"
"""The secrets of all scenarios: a name and a value in each line."""
OTHER_SECRETS = "KQUOTA_WATCHED_SECRETS"
"""An environment variable with another such file, for a run next to one of a scenario."""

AS_ROOT = () if os.geteuid() == 0 else ("sudo", "-n")
_LOOK = "--look"
# From <linux/connector.h> and <linux/cn_proc.h>.
_CONNECTOR, _CN_IDX_PROC, _CN_VAL_PROC, _LISTEN, _EXEC = 11, 1, 1, 1, 0x2
_SUBSCRIPTION = struct.pack(
    "=IHHII IIIIHH I", 40, 3, 0, 0, 0, _CN_IDX_PROC, _CN_VAL_PROC, 0, 0, 4, 0, _LISTEN
)
_EVENT, _EVENT_OFFSET = struct.Struct("=IIQII"), 36
_SO_RCVBUFFORCE, _BUFFER_BYTES = 33, 1 << 25


def secrets_of_scenarios() -> dict[str, str]:
    """Return the secrets in the scenarios' inventory, by name."""
    lines = Path(os.environ.get(OTHER_SECRETS, SECRETS_FILE)).read_text("utf-8").splitlines()
    pairs = [line.partition(": ") for line in lines if ": " in line and not line.startswith("#")]
    assert pairs
    return {name: value.strip() for name, _, value in pairs}


@contextmanager
def watched(secrets: Mapping[str, str]) -> Iterator[Callable[[], list[str]]]:
    """Watch the machine and the hosts on it; the yielded function ends that and returns the findings.

    A finding is ``secret in cmdline of program``, or ``secret in environ of user 998``.
    """
    command = [*AS_ROOT, sys.executable, __file__, _LOOK]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # Not as arguments.
        process.stdin.write(json.dumps(dict(secrets)) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"

        def end() -> list[str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            report = json.loads(process.stdout.readline())
            assert report["looks"] > 0
            found: list[str] = report["found"]
            return found

        yield end


def _visible(process: Path) -> Iterable[tuple[str, bytes]]:
    """Yield what a user other than root can read of a process, each with the place."""
    # It may have ended.
    with contextlib.suppress(OSError):
        arguments = (process / "cmdline").read_bytes()
        yield f"cmdline of {arguments.split(bytes(1), 1)[0].decode(errors='replace')}", arguments
        # Root's environment is root's alone; another user's can be read by all programs of this user.
        if owner := process.stat().st_uid:
            yield f"environ of user {owner}", (process / "environ").read_bytes()


def _look(process: Path, secrets: Mapping[str, bytes]) -> set[str]:
    return {
        f"{name} in {place}"
        for place, content in _visible(process)
        for name, secret in secrets.items()
        if secret in content
    }


def _look_until_input_ends() -> None:
    secrets = {name: value.encode() for name, value in json.loads(sys.stdin.readline()).items()}
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    events = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _CONNECTOR)
    events.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    events.bind((0, _CN_IDX_PROC))
    events.send(_SUBSCRIPTION)
    print("ready", flush=True)
    # Those that ran before.
    found = {each for process in Path("/proc").glob("[0-9]*") for each in _look(process, secrets)}
    looks = 0
    while True:
        readable = select.select([events, sys.stdin], [], [])[0]
        if events not in readable:
            break  # after the last event
        what, _, _, _, process_id = _EVENT.unpack_from(events.recv(4096), _EVENT_OFFSET)
        if what == _EXEC:
            looks += 1
            found |= _look(Path(f"/proc/{process_id}"), secrets)
    print(json.dumps({"looks": looks, "found": sorted(found)}), flush=True)


def main(arguments: list[str]) -> int:
    """Run the command; return its exit code, or 1 with the findings on standard error."""
    if arguments == [_LOOK]:
        _look_until_input_ends()
        return 0
    with watched(secrets_of_scenarios()) as end:
        code = subprocess.run(arguments, check=False).returncode
        found = end()
    for each in found:
        print(f"process list: {each}", file=sys.stderr)
    return code or len(found[:1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
