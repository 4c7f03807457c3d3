"""Running the machine's own commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# An ordinary user's PATH, kept by sudo -E, has no room for root's commands.
_PATH = f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"


class CommandFailed(Exception):
    """A command of this machine failed; the message holds its output."""


def run(*command: str | Path, check: bool = True) -> str:
    """Run a command and return what it printed.

    Raises:
        CommandFailed: it ended with another code than 0, and `check` is set.
    """
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"PATH": _PATH},
    )
    if check and done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise CommandFailed(f"{' '.join(map(str, command))}: {said or f'exit {done.returncode}'}")
    return done.stdout
