"""The Spark session of a run: it sets the needs of the tables; the operator decides where it runs."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from kquota_pipeline.archive import ARCHIVE_NAME, write_archive
from kquota_pipeline.jars import ensure_jars
from kquota_pipeline.java_warnings import without_incubator_warning

FIXED = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
"""Not the operator's to choose: records of one day would be in two, and overflows would pass silently."""
# Without the others tables can't be read, or cost far more to read.
_REQUIRED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Of any day that a record may name; no other program reads the tables with the old calendar.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    # A batch of a back-fill has rows of several days: writing their files side by side saves sorting it.
    "spark.sql.maxConcurrentOutputFileWriters": "64",
    # A table's log is small; Delta's 50 tasks to read one cost more than the reading.
    "spark.databricks.delta.snapshotPartitions": "2",
    # Delta looks for unused files in this many tasks, however few folders a table has: 10,000 take longer
    # than all other work of `maintain` on a day of a small table.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
}
# Settings for one machine. Under spark-submit the operator's own configuration applies instead.
_ALONE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_PARTITIONS_PER_CORE = 4
# Spark's own default. Executors may come after the start, and Spark joins partitions that turn out small.
_LEAST_ON_A_CLUSTER = 200
_MEBIBYTE = 2**20
# On this machine the driver does all work; Python's processes and the cache of files need memory, too.
_DRIVER_SHARE = 1 / 4
_DRIVER_BYTES = 2 * 2**30, 16 * 2**30


def start_session(
    name: str, configuration: Mapping[str, str] | None = None, report: Callable[[str], None] = print
) -> SparkSession:
    """Return the session of a run called `name`, with `configuration` (Spark's own keys) on top of ours,
    but for those of FIXED.

    Nothing here names a master: Spark's default is local[*], and spark-submit, spark-defaults.conf or
    `configuration` may name a cluster. Its executors get this package as an archive. Shuffles have as many
    partitions as fit its cores, unless they are given, and the driver a part of this machine's memory.

    Raises:
        JarsUnavailable: see `ensure_jars`.
    """
    given = dict(configuration or {})
    under_spark_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {}
    if not under_spark_submit:
        settings = {
            **_ALONE,
            "spark.driver.memory": driver_memory(memory_bytes()),
            "spark.driver.extraJavaOptions": _quiet_logging(),
        }
    settings |= _REQUIRED | given | FIXED
    if not under_spark_submit and "spark.jars" not in given:
        settings["spark.jars"] = ",".join(str(jar) for jar in ensure_jars(report))
    if not under_spark_submit and settings.get("spark.master", "local").startswith("local"):
        # Functions in Python run in processes of their own: with this installation, not with Debian's
        # Python.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    with nullcontext() if under_spark_submit else without_incubator_warning():
        spark = builder.getOrCreate()
    is_local = (spark.conf.get("spark.master") or "").startswith("local")
    if not spark.sparkContext.getConf().contains(_SHUFFLE_PARTITIONS):
        count = shuffle_partitions(spark.sparkContext.defaultParallelism, is_local)
        spark.conf.set(_SHUFFLE_PARTITIONS, str(count))
    if not is_local and not _is_shipped(spark):
        # The driver serves the file as long as the session lives.
        folder = TemporaryDirectory(prefix="kquota-pipeline-")
        atexit.register(folder.cleanup)
        spark.sparkContext.addPyFile(str(write_archive(Path(folder.name))))
    return spark


def shuffle_partitions(parallelism: int, is_local: bool) -> int:
    """Return the partitions of a shuffle for this many tasks at once, on this machine or on a cluster."""
    count = _PARTITIONS_PER_CORE * parallelism
    return count if is_local else max(count, _LEAST_ON_A_CLUSTER)


def driver_memory(machine_bytes: int) -> str:
    """Return the driver's memory on a machine with this many bytes, as Spark writes it."""
    least, most = _DRIVER_BYTES
    return f"{int(min(max(machine_bytes * _DRIVER_SHARE, least), most)) // _MEBIBYTE}m"


def memory_bytes(groups: Path = Path("/sys/fs/cgroup"), own_group: Path = Path("/proc/self/cgroup")) -> int:
    """Return the memory of this machine, or what a container or service may use of it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    name = own_group.read_text("utf-8").rpartition("0::/")[2].strip() if own_group.exists() else ""
    folder = groups / name
    for place in (folder, *(parent for parent in folder.parents if parent.is_relative_to(groups))):
        limit = place / "memory.max"
        text = limit.read_text("utf-8").strip() if limit.exists() else ""
        if text.isdigit():  # or `max`
            found.append(int(text))
    return min(found)


def _is_shipped(spark: SparkSession) -> bool:
    """Whether spark-submit was given the archive (--py-files): Spark takes no second one of its name."""
    given = spark.sparkContext.getConf().get("spark.submit.pyFiles") or ""
    return any(path.rsplit("/", 1)[-1] == ARCHIVE_NAME for path in given.split(","))


def _quiet_logging() -> str:
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
