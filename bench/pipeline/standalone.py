"""A Spark cluster on loopback: a master and workers, Spark's own processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from kquota_pipeline.archive import write_archive, write_program
from kquota_pipeline.jars import ensure_jars

SPARK_HOME = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_PATIENCE_SECONDS = 600.0


class StandaloneCluster:
    """A master and workers with this many cores and this much memory each; `folder` has their logs and work.

    Attributes:
        url: what `spark.master` is set to, once it runs.
    """

    def __init__(self, folder: Path, workers: int = 2, cores: int = 1, memory: str = "1g") -> None:
        self.url = ""
        self._folder = folder
        self._workers, self._cores, self._memory = workers, cores, memory
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> Sequence[int]:
        """The processes of master and workers; those of executors are their children."""
        return [process.pid for process in self._processes]

    def start(self) -> None:
        """Start master and workers, and wait until they know each other."""
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._run("master", [_MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"])
        self.url = self._said(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        size = ["--cores", str(self._cores), "--memory", self._memory]
        for number in range(1, self._workers + 1):
            where = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(self.work(number))]
            log = self._run(f"worker-{number}", [_WORKER, *where, *size, self.url])
            self._said(log, "Successfully registered with master")

    def work(self, number: int) -> Path:
        """Return the folder of a worker's executors."""
        return self._folder / f"work-{number}"

    def stop(self) -> None:
        """End all of them; their executors end with them."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _run(self, name: str, arguments: Sequence[str]) -> Path:
        log = self._folder / f"{name}.log"
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [str(SPARK_HOME / "bin/spark-class"), *arguments],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment(SPARK_DAEMON_MEMORY="256m"),
                )
            )
        return log

    def _said(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if match := re.search(pattern, log.read_text("utf-8", "replace")):
                return match[match.lastindex or 0]
            if any(process.poll() is not None for process in self._processes):
                raise RuntimeError(f"a process of Spark's cluster has ended:\n{log.read_text()[-3000:]}")
            time.sleep(0.2)
        raise RuntimeError(f"{log.name} never said {pattern}:\n{log.read_text()[-3000:]}")


@contextmanager
def standalone_cluster(
    folder: Path, workers: int = 2, cores: int = 1, memory: str = "1g"
) -> Iterator[StandaloneCluster]:
    """A cluster that is gone at the end of the block."""
    running = StandaloneCluster(folder, workers, cores, memory)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def environment(**more: str) -> Mapping[str, str]:
    """Return the environment of Spark's own programs, with this Python for theirs."""
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        **more,
    }


def document(said: str) -> Any:
    """Return the JSON in the output of spark-submit, which has the progress of a command there, too: it gives
    Python's standard error to its own standard output.
    """
    begin = re.search(r"^[\[{]", said, re.MULTILINE)
    if begin is None:
        raise RuntimeError(f"there is no JSON in:\n{said[-3000:]}")
    return json.JSONDecoder().raw_decode(said, begin.start())[0]


def submitted(master: str, folder: Path, settings: Mapping[str, str]) -> list[str]:
    """Return how an operator runs a command of `kquota-pipeline` with spark-submit, up to the command's name.

    The archive and the program are written to `folder`.
    """
    archive, program = write_archive(folder), write_program(folder)
    of_settings = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [
        *(str(SPARK_HOME / "bin/spark-submit"), "--master", master),
        *of_settings,
        *("--jars", ",".join(str(jar) for jar in ensure_jars())),
        *("--py-files", str(archive)),
        str(program),
    ]
