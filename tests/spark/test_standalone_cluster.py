"""On a real Spark cluster, a master and two workers on loopback: the same commands, the package archived."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from kquota_pipeline import delta
from kquota_pipeline.archive import write_archive, write_program
from kquota_pipeline.jars import ensure_jars
from kquota_pipeline.tables import TICKS, USAGE, Tables
from tests.spark.ingest.process import ingest_arguments

SPARK_HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
PATIENCE_SECONDS = 600.0

# An executor's own Python reports where it runs and what it imports. The environment knows the
# package by its sources as well; the archive comes first.
WHERE_IT_RUNS = """
import sys
from kquota_pipeline.session import start_session
spark = start_session("where", {"spark.master": sys.argv[1], "spark.cores.max": "2"})
print("PARTITIONS", spark.conf.get("spark.sql.shuffle.partitions"))

def where(batches):
    import os, kquota.core.policy, kquota_pipeline, pyarrow as pa
    import time
    for batch in batches:
        time.sleep(2)
        yield pa.RecordBatch.from_pydict({"place": [kquota_pipeline.__file__ + " " + os.getcwd()]})

for row in spark.range(0, 4, 1, 4).mapInArrow(where, "place string").distinct().collect():
    print("PLACE", row["place"])
spark.stop()
"""


class Cluster:
    """Spark's own processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.url = ""

    def start(self) -> None:
        master_log = self._run("master", [MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"])
        self.url = self._said(master_log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for number in (1, 2):
            more = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
            more += ["--work-dir", str(self.folder / f"work-{number}"), self.url]
            self._said(self._run(f"worker-{number}", [WORKER, *more]), "Successfully registered with master")

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _run(self, name: str, arguments: list[str]) -> Path:
        log = self.folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as output:
            command = [str(SPARK_HOME / "bin/spark-class"), *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        self.processes.append(process)
        return log

    def _said(self, log: Path, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if match := re.search(pattern, log.read_text("utf-8", "replace")):
                return match[match.lastindex or 0]
            assert all(process.poll() is None for process in self.processes), log.read_text()[-3000:]
            time.sleep(0.2)
        raise AssertionError(f"{log.name} never said {pattern}:\n{log.read_text()[-3000:]}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS * 2,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_command_runs_on_a_cluster_and_its_executors_import_the_archive(
    spark, tables: Tables, tmp_path: Path, cluster: Cluster, history
) -> None:
    script = tmp_path / "where.py"
    script.write_text(WHERE_IT_RUNS)
    said = run([sys.executable, str(script), cluster.url])
    assert "PARTITIONS 200" in said, "and not those of this machine"
    places = re.findall(r"PLACE (\S+) (\S+)", said)
    assert {Path(module).parents[1].name for module, _ in places} == {"kquota_pipeline.zip"}
    assert {Path(folder).parents[1].name for _, folder in places} == {"work-1", "work-2"}

    topic = history(partitions=2, volumes=3)
    topic.send("usage", range(500))
    arguments = [f"--spark=spark.master={cluster.url}", "--spark=spark.executor.memory=768m"]
    ingest = [part for part in ingest_arguments(topic, tmp_path) if "spark.master" not in part]
    run([sys.executable, "-m", "kquota_pipeline", *ingest, *arguments])
    assert delta.read(spark, tables, USAGE).count() == 1500

    # By spark-submit, as an operator with a cluster would.
    archive, program = write_archive(tmp_path), write_program(tmp_path)
    submit = [str(SPARK_HOME / "bin/spark-submit"), "--master", cluster.url, "--executor-memory", "768m"]
    submit += ["--conf", "spark.sql.shuffle.partitions=2"]
    submit += [
        "--jars",
        ",".join(str(jar) for jar in ensure_jars()),
        "--py-files",
        str(archive),
        str(program),
    ]
    said = run([*submit, "maintain", f"--tables={tables.root}"], SPARK_HOME=str(SPARK_HOME))
    assert "closed days put in order" in said
    assert delta.read(spark, tables, TICKS).count() == 500
