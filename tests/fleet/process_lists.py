"""Looks while plays run at what all users see of processes: arguments, and the environments of users.

As a program it looks until its standard input ends, and prints the findings as JSON. The first line of
standard input has the secrets, a JSON object of names and values: the program's arguments must not.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PAUSE_SECONDS = 0.002
"""A process that ends sooner may be missed; those that sign, hash passwords or load Java take longer."""


def visible(process: Path) -> Iterable[tuple[str, bytes]]:
    """Yield what a user other than root can read of a process, by the name of its file in /proc."""
    try:
        yield "cmdline", (process / "cmdline").read_bytes()
        # Root's environment is root's alone; another user's can be read by all programs of this user.
        if process.stat().st_uid != 0:
            yield "environ", (process / "environ").read_bytes()
    except OSError:
        return  # it has ended


def look(secrets: Mapping[str, bytes], seen: dict[Path, int]) -> set[str]:
    """Look at each process that is new or runs another program; return `secret in cmdline of program`."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        for file, content in visible(process):
            key = process / file
            if seen.get(key) == hash(content):
                continue
            seen[key] = hash(content)
            program = content.split(b"\0", 1)[0].decode(errors="replace") if file == "cmdline" else ""
            for name, secret in secrets.items():
                if secret in content:
                    found.add(f"{name} in {file} of {program}".strip())
    return found


@contextmanager
def watched(secrets: Mapping[str, str]) -> Iterator[Callable[[], list[str]]]:
    """Watch the machine and the hosts on it; the yielded function ends that and returns the findings."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(secrets) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"

        def end() -> list[str]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            report = json.loads(process.stdout.readline())
            assert report["looks"] > 5
            found: list[str] = report["found"]
            return found

        yield end


def main() -> None:
    secrets = {name: value.encode() for name, value in json.loads(sys.stdin.readline()).items()}
    print("ready", flush=True)
    seen: dict[Path, int] = {}
    found: set[str] = set()
    looks = 0
    while not select.select([sys.stdin], [], [], PAUSE_SECONDS)[0]:
        found |= look(secrets, seen)
        looks += 1
    print(json.dumps({"looks": looks, "found": sorted(found)}), flush=True)


if __name__ == "__main__":
    main()
