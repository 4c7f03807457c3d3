"""Which versions of Kafka the preflight accepts, by the jars of a broker."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION, ensure_kafka_runtime
from tests.fleet.roles.plays import PlayFailed, run_tasks

LOOK = (("kquota_callback", "preflight_versions"),)


def look(folder: Path) -> None:
    """Look at a broker whose Kafka is in this folder."""
    variables = {"kquota_callback_kafka_home": str(folder), "kquota_callback_java": shutil.which("java")}
    owner = {"kquota_callback_broker_user": "root", "kquota_callback_broker_group": "root"}
    run_tasks(folder, LOOK, {**variables, **owner})


def with_jar(folder: Path, name: str) -> Path:
    # As in Confluent's packages, or as in those of Apache.
    libs = folder / ("share/java/kafka" if "4.1.2" in name else "libs")
    libs.mkdir(parents=True)
    (libs / name).touch()
    return folder


@pytest.mark.parametrize("version", ["4.1.0", "4.1.2", "4.2.1", "4.3.1", "4.4.0"])
def test_supported_versions_are_accepted_by_the_names_of_their_jars(version: str, tmp_path: Path) -> None:
    look(with_jar(tmp_path, f"kafka-clients-{version}.jar"))


@pytest.mark.parametrize(
    "name", ["kafka-clients-3.9.1.jar", "kafka-clients-4.0.2.jar", "kafka-clients-4.5.0.jar", "other.jar"]
)
def test_others_are_refused_with_what_is_supported(name: str, tmp_path: Path) -> None:
    found = name if name.startswith("kafka-clients") else "no kafka-clients"
    with pytest.raises(
        PlayFailed, match=rf"{found}[\s\S]*supports\s+4\.1\s+to\s+4\.4[\s\S]*kquota_kafka_home"
    ):
        look(with_jar(tmp_path, name))


def test_the_version_of_a_vendor_is_what_the_jars_say(tmp_path: Path) -> None:
    libs = tmp_path / "libs"
    libs.mkdir()
    for jar in ensure_kafka_runtime().jars.iterdir():
        vendors = jar.name.replace(f"-{DEFAULT_KAFKA_VERSION}.jar", "-8.9.0-ccs.jar")
        (libs / vendors).symlink_to(jar)
    look(tmp_path)


def test_a_vendor_s_version_that_no_jar_explains_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlayFailed, match=r"8\.1\.0-ccs[\s\S]*is\s+8\.1\.0"):
        look(with_jar(tmp_path, "kafka-clients-8.1.0-ccs.jar"))
