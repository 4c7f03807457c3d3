"""Java's standard error without the one line that Spark itself causes at each start."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

# Spark asks Java for this module, and has no setting for that. Java has no option that silences the line
# (-Xlog:disable, -XX:-PrintWarnings, -Xshare:off and --limit-modules do not). Only the whole line is left
# out, and once: all that follows passes as it comes, a progress bar without ends of lines, too. In the
# background, so that Ctrl-C does not end it before Java.
_LEAVE_OUT = """
exec 3<&0
{
  while IFS= read -r line; do
    [ "$line" != 'WARNING: Using incubator modules: jdk.incubator.vector' ] || exec cat
    printf '%s\\n' "$line"
  done
  printf '%s' "$line"
} <&3 3<&- &
"""


@contextmanager
def without_incubator_warning() -> Iterator[None]:
    """Processes that start inside write to a standard error that leaves out Java's warning of the incubator
    module that Spark uses.

    It ends with the last of these processes.
    """
    before = os.dup(2)
    reading, writing = os.pipe()
    try:
        subprocess.run(["sh", "-c", _LEAVE_OUT], stdin=reading, stdout=before, check=True)
        os.dup2(writing, 2)
        yield
    finally:
        os.dup2(before, 2)
        for end in (before, reading, writing):
            os.close(end)
