"""A lock between processes: the other one is named, and the lock ends with its holder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kquota.host.file_lock import FileLock

_HOLD = """
import sys
from pathlib import Path
from kquota.host.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print(lock.take(), flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lock."""
    command = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "None\n"
            yield process
        finally:
            process.kill()


def test_one_process_has_the_lock_and_the_others_learn_which(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with holder(path) as process, FileLock(path) as lock:
        found = lock.take()
        assert found is not None
        assert found.process_id == process.pid
        assert found.command.startswith(f"{sys.executable} -c '")
        assert "\n" not in found.command
        process.kill()
        process.wait()
        assert lock.take() is None
    with holder(path) as process:
        assert process.poll() is None
