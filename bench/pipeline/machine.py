"""Where it was measured."""

from __future__ import annotations

import os
import platform

import duckdb
import psutil
import pyspark

from kquota import __version__
from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION


def this_machine() -> str:
    """Return the machine we run on, and the versions that were measured on it, in one line."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB of memory, Linux {platform.release()}, "
        f"Spark {pyspark.__version__}, DuckDB {duckdb.__version__}, Kafka {DEFAULT_KAFKA_VERSION}, "
        f"kquota {__version__}"
    )
