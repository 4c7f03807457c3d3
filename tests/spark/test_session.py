"""The size of a session: by the machine or the cluster on which it runs, unless the operator gives it."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from kquota_pipeline.cli.options import spark_settings
from kquota_pipeline.session import driver_memory, memory_bytes, shuffle_partitions, start_session

GIBIBYTE = 2**30
MACHINE_BYTES = memory_bytes()
STARTED = """
from kquota_pipeline.session import start_session
spark = start_session("size", {"spark.master": "local[3]"})
print("SIZE", spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("spark.driver.memory"))
spark.stop()
"""


@pytest.mark.parametrize(
    ("parallelism", "is_local", "count"), [(2, True, 8), (32, True, 128), (2, False, 200), (400, False, 1600)]
)
def test_shuffles_have_partitions_for_all_cores_and_on_a_cluster_no_less_than_by_default(
    parallelism, is_local, count
):
    assert shuffle_partitions(parallelism, is_local) == count


@pytest.mark.parametrize(
    ("gibibytes", "memory"), [(1, "2048m"), (8, "2048m"), (23.5, "6016m"), (64, "16384m"), (512, "16384m")]
)
def test_the_driver_has_a_quarter_of_the_memory_within_bounds(gibibytes, memory):
    assert driver_memory(int(gibibytes * GIBIBYTE)) == memory


def test_a_limit_of_the_own_group_or_of_one_around_it_counts_as_memory(tmp_path):
    own, group = tmp_path / "cgroup", tmp_path / "groups/system.slice/job.service"
    group.mkdir(parents=True)
    own.write_text("0::/system.slice/job.service\n")
    groups = tmp_path / "groups"
    assert memory_bytes(groups, tmp_path / "absent") == memory_bytes(groups, own) >= MACHINE_BYTES
    (group / "memory.max").write_text("max\n")
    (group.parent / "memory.max").write_text("67108864\n")
    assert memory_bytes(groups, own) == 64 * 2**20
    (group / "memory.max").write_text("33554432\n")
    assert memory_bytes(groups, own) == 32 * 2**20


def test_what_the_operator_gives_stays(spark):
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    assert start_session("again") is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_the_days_of_the_tables_are_those_of_utc_whatever_the_operator_gives(spark):
    zone = "spark.sql.session.timeZone"
    assert spark_settings([f"{zone}=UTC", "spark.a=b=c"]) == {zone: "UTC", "spark.a": "b=c"}
    with pytest.raises(typer.BadParameter, match=f"{zone} can only be UTC, not 'Asia/Tokyo'"):
        spark_settings([f"{zone}=Asia/Tokyo"])
    assert start_session("elsewhere", {zone: "Asia/Tokyo"}).conf.get(zone) == "UTC"


@pytest.mark.long
def test_a_session_fits_the_cores_and_the_memory_of_this_machine():
    done = subprocess.run([sys.executable, "-c", STARTED], check=True, capture_output=True, text=True)
    assert f"SIZE 12 {driver_memory(MACHINE_BYTES)}" in done.stdout
