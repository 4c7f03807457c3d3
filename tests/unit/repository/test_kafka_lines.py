"""The versions of Kafka that are supported and tested are the same wherever they are written."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from plugins.modules import kquota_node
from testbed.loopback.runtime import DEFAULT_KAFKA_VERSION
from tests.kafka_lines import KAFKA_LINES, listed
from tests.unit.repository.tree import REPOSITORY

POM = "{http://maven.apache.org/POM/4.0.0}"


def text(path: str) -> str:
    return (REPOSITORY / path).read_text("utf-8")


LINES = {version.rpartition(".")[0]: version for version in KAFKA_LINES}


def test_the_profiles_of_the_plug_in_have_them() -> None:
    pom = ElementTree.parse(REPOSITORY / "callback/pom.xml").getroot()
    own = pom.findtext(f"{POM}properties/{POM}kafka.version")
    found = {
        str(profile.findtext(f"{POM}id")).removeprefix("kafka-"): profile.findtext(
            f"{POM}properties/{POM}kafka.version", own
        )
        for profile in pom.iter(f"{POM}profile")
        if str(profile.findtext(f"{POM}id")).startswith("kafka-")
    }
    # The classes that are compiled against 4.1 run on 4.0.
    assert found == {**LINES, "4.0": LINES["4.1"]}
    assert set(listed("KAFKAS_OWN_TESTS")) >= {LINES["4.1"], LINES["4.3"]}


def test_make_test_long_has_a_stream_for_each_and_make_test_the_oldest_and_the_newest() -> None:
    streams = text("tools/streams.mk")
    assert set(re.findall(r"^java-(4\.\d)-makes := test-java-\1$", streams, re.MULTILINE)) == {*LINES} - {
        "4.1"
    }
    oldest, *_, newest = LINES.values()
    assert newest == DEFAULT_KAFKA_VERSION
    assert f'"{oldest}", pytest.param(' in text("tests/integration/versions/test_former_versions.py")


def test_the_lock_of_maven_has_their_jars() -> None:
    lock = text("requirements/maven.sha256")
    versions = {*LINES.values(), *listed("KAFKAS_OWN_TESTS"), DEFAULT_KAFKA_VERSION}
    assert [version for version in versions if f"/kafka_2.13-{version}.jar\n" not in lock] == []


def test_the_preflight_and_the_pages_name_them() -> None:
    oldest, *_, newest = LINES
    assert [".".join(map(str, line)) for line in kquota_node.KAFKA_LINES] == [oldest, newest]
    support = text("docs/support.md")
    table = support.split("### The lines of Kafka")[1].split("###")[0]
    assert dict(re.findall(r"^\| (4\.\d) \| (4\.\d\.\d) \|", table, re.MULTILINE)) == LINES
    assert f"Kafka {oldest} to {newest}" in text("docs/fleet.md")
    assert f"Kafka {oldest} to {newest}" in text("callback/README.md")
    assert f"Kafka {oldest} to {newest}" in text("README.md")
