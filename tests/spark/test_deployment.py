"""The inputs of spark-submit: the jars, and the package as an archive."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from kquota_pipeline.archive import write_archive
from kquota_pipeline.cli.analysis import example_policies
from kquota_pipeline.jars import JarsUnavailable, ensure_jars, fetch_jars, locked_jars


def test_the_jars_of_the_pom_are_all_there():
    names = [jar.name for jar in ensure_jars()]
    assert names == sorted(locked_jars())
    assert {name.rsplit("-", 1)[0] for name in names} == {
        "commons-pool2",
        "delta-spark_2.13",
        "delta-storage",
        "kafka-clients",
        "spark-sql-kafka-0-10_2.13",
        "spark-token-provider-kafka-0-10_2.13",
    }


def test_jars_are_fetched_into_a_folder_below_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fetch_jars(Path("dist/jars"))
    fetched = sorted(path.name for path in tmp_path.glob("dist/jars/*.jar"))
    assert fetched == [jar.name for jar in ensure_jars()]


def test_a_configured_folder_without_the_jars_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("KQUOTA_PIPELINE_JARS", str(tmp_path))
    with pytest.raises(JarsUnavailable, match=f"KQUOTA_PIPELINE_JARS={tmp_path}: holds 0 jars, not the 6"):
        ensure_jars()


def test_a_jar_that_is_not_the_locked_one_is_refused_with_both_checksums(tmp_path, monkeypatch):
    for jar in ensure_jars():
        (tmp_path / jar.name).symlink_to(jar)
    altered = tmp_path / "delta-storage-4.0.1.jar"
    content = bytearray(altered.read_bytes())
    content[len(content) // 2] ^= 1
    altered.unlink()
    altered.write_bytes(content)
    monkeypatch.setenv("KQUOTA_PIPELINE_JARS", str(tmp_path))
    found, wanted = sha256(content).hexdigest(), locked_jars()[altered.name]
    with pytest.raises(
        JarsUnavailable, match=rf"{altered.name} has the SHA-256 {found}, but {wanted} was locked"
    ):
        ensure_jars()


def test_the_archive_can_be_imported_from_and_holds_of_kquota_only_its_parts(tmp_path):
    archive = write_archive(tmp_path)
    program = (
        "import kquota.policy.decide, kquota_pipeline.tables, kquota_pipeline.cli.main, importlib.util as u;"
        "print(kquota_pipeline.tables.__file__); print(u.find_spec('kquota.service'));"
        "from kquota_pipeline.cli.analysis import example_policies; print(len(example_policies()))"
    )
    # -S and -I keep this machine's own kquota away; pyspark has to come from somewhere.
    packages = str(Path(sys.modules["pyspark"].__file__).parents[1])
    script = f"import sys; sys.path[:0] = [{str(archive)!r}, {packages!r}]; {program}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    place = f"{archive}/kquota_pipeline/tables/__init__.py"
    assert done.stdout.splitlines() == [place, "None", str(len(example_policies()))]


def test_the_same_sources_give_the_same_archive(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert write_archive(tmp_path / "a").read_bytes() == write_archive(tmp_path / "b").read_bytes()
