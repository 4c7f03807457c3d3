"""`kquota-pipeline` as a process of its own, which can be killed together with its JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.ingest.history import History

_PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 0.005


class PipelineProcess:
    """One run of `kquota-pipeline ingest`, leader of its own process group."""

    def __init__(self, arguments: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kquota_pipeline", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    def kill_when(self, reached: Callable[[], bool]) -> None:
        """Kill -9 the command and its JVM as soon as something is so; fail if it ended before."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not reached():
            assert self._process.poll() is None, f"ended before it could be killed:\n{self.tail()}"
            assert time.monotonic() < deadline, f"never came so far:\n{self.tail()}"
            time.sleep(_LOOK_SECONDS)
        self.kill()

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(_PATIENCE_SECONDS)

    def kill(self) -> None:
        """Kill -9 the whole process group."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self._process.wait()

    def tail(self) -> str:
        """The end of what it wrote."""
        return self.log.read_text("utf-8", "replace")[-4000:]


def ingest_arguments(history: History, folder: Path, *more: str) -> list[str]:
    """Arguments of an ingest into `folder`/tables with the checkpoint `folder`/checkpoint."""
    properties = folder / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in history.client_properties().items()))
    return [
        "ingest",
        f"--tables=file:{folder}/tables",
        f"--checkpoint=file:{folder}/checkpoint",
        f"--bootstrap-servers={history.cluster.internal_bootstrap_servers}",
        f"--kafka-properties={properties}",
        f"--topic={history.topic}",
        "--spark=spark.master=local[2]",
        "--spark=spark.sql.shuffle.partitions=2",
        *more,
    ]


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator[PipelineProcess]:
    """A run that is gone at the end of the block, however it ends."""
    process = PipelineProcess(arguments, log)
    try:
        yield process
    finally:
        process.kill()
