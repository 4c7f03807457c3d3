"""Which versions of Kafka the preflight accepts, by the jars of a broker, and which of Ansible."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from testbed.loopback.runtime import ensure_kafka_runtime
from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

LOOK = {"name": "kquota_callback", "tasks_from": "preflight_versions", "public": True}


def look(folder: Path, *more: Mapping[str, object]) -> None:
    """Look at a broker whose Kafka is in this folder, and run these tasks then."""
    variables = {"kquota_callback_kafka_home": str(folder), "kquota_callback_java": shutil.which("java")}
    owner = {"kquota_callback_broker_user": "root", "kquota_callback_broker_group": "root"}
    run_play(folder, [{"ansible.builtin.include_role": LOOK}, *more], {**variables, **owner})


def with_jar(folder: Path, name: str) -> Path:
    # As in Confluent's packages, or as in those of Apache.
    libs = folder / ("share/java/kafka" if "4.1.2" in name else "libs")
    libs.mkdir(parents=True)
    (libs / name).touch()
    return folder


@pytest.mark.parametrize("version", ["4.0.0", "4.1.2", "4.2.2", "4.3.1", "4.4.0"])
def test_supported_versions_are_accepted_by_the_names_of_their_jars(version: str, tmp_path: Path) -> None:
    look(with_jar(tmp_path, f"kafka-clients-{version}.jar"))


@pytest.mark.parametrize("name", ["kafka-clients-3.9.2.jar", "kafka-clients-4.5.0.jar", "other.jar"])
def test_others_are_refused_with_what_is_supported(name: str, tmp_path: Path) -> None:
    found = name if name.startswith("kafka-clients") else "no kafka-clients"
    with pytest.raises(
        PlayFailed, match=rf"{found}[\s\S]*supports\s+4\.0\s+to\s+4\.4[\s\S]*kquota_kafka_home"
    ):
        look(with_jar(tmp_path, name))


def with_jars_of_a_vendor(folder: Path, vendors: str, kafka: str) -> Path:
    """All jars of a Kafka, under the names that a vendor gives them."""
    libs = folder / "libs"
    libs.mkdir()
    for jar in ensure_kafka_runtime(kafka).jars.iterdir():
        (libs / jar.name.replace(f"-{kafka}.jar", f"-{vendors}.jar")).symlink_to(jar)
    return folder


@pytest.mark.parametrize(
    ("vendors", "kafka", "line"),
    [pytest.param("8.0.0-ccs", "4.0.2", "4.0", marks=pytest.mark.long), ("8.1.0-ccs", "4.1.2", "4.1")],
)
def test_the_version_of_a_vendor_is_what_the_jars_say(
    vendors: str, kafka: str, line: str, tmp_path: Path
) -> None:
    is_line = {"ansible.builtin.assert": {"that": f"kquota_callback_kafka_version == '{line}'"}}
    look(with_jars_of_a_vendor(tmp_path, vendors, kafka), is_line)


def test_a_vendor_s_version_of_an_unsupported_kafka_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlayFailed, match=r"7\.9\.2-ccs[\s\S]*is\s+7\.9\.2,\s+but\s+the\s+plug-in\s+supports"):
        look(with_jars_of_a_vendor(tmp_path, "7.9.2-ccs", "3.9.2"))


def test_a_vendor_s_version_that_no_jar_explains_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlayFailed, match=r"8\.1\.0-ccs[\s\S]*is\s+8\.1\.0"):
        look(with_jar(tmp_path, "kafka-clients-8.1.0-ccs.jar"))


@pytest.mark.parametrize(
    ("version", "is_accepted"),
    [
        *((version, False) for version in ("2.14.18", "2.16.13", "2.17.14", "2.18.0", "2.18.0rc1")),
        *((version, True) for version in ("2.16.14", "2.18.1", "2.19.14", "2.20.3")),
    ],
)
def test_plays_end_before_a_release_that_runs_templates_of_hosts_reads_them(
    version: str, is_accepted: bool, tmp_path: Path
) -> None:
    play = yaml.safe_load((REPOSITORY / "playbooks/reachable.yml").read_text("utf-8"))[0]
    check = play["tasks"][0]
    assert not play["gather_facts"]
    of_version = json.loads(json.dumps(check).replace("ansible_version.full", f"'{version}'"))
    if is_accepted:
        run_play(tmp_path, [of_version], {})
    else:
        with pytest.raises(PlayFailed, match=rf"ansible-core {version} runs templates"):
            run_play(tmp_path, [of_version], {})
