"""The plug-in's package on a real Debian: no broker looks for a jar that is gone. Test follows test."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from kquota import __version__
from tests.packaging.suite import Host, next_version

pytestmark = pytest.mark.long

JARS = "/usr/share/java"
PROPERTIES = "/opt/kafka_2.13-4.1.2/config/server.properties"
LIST = "/etc/kquota-callback/broker-configurations"


def jars(host: Host) -> list[str]:
    return sorted(path.name for path in host.path(JARS).glob("kquota*"))


@pytest.fixture(scope="module")
def installed(host: Host, callback_package: Path) -> None:
    host.dpkg("-i", callback_package)


@pytest.fixture(scope="module")
def upgraded(
    host: Host, installed: None, callback_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    host.write(f"{JARS}/kquota-callback-0.0.9.jar", "kept by the upgrade before")
    host.dpkg("-i", next_version(callback_package, tmp_path_factory.mktemp("upgrade")))


def test_the_jar_is_where_the_documents_say(host: Host, installed: None):
    assert jars(host) == [f"kquota-callback-{__version__}.jar", "kquota-callback.jar"]
    with zipfile.ZipFile(host.path(f"{JARS}/kquota-callback.jar")) as jar:
        assert "org/kquota/KquotaCallback.class" in jar.namelist()


def test_an_upgrade_keeps_the_jar_that_a_running_broker_was_started_with(host: Host, upgraded: None):
    assert jars(host) == [
        f"kquota-callback-{__version__}.1.jar",
        f"kquota-callback-{__version__}.jar",
        "kquota-callback.jar",
    ]
    assert host.path(f"{JARS}/kquota-callback.jar").readlink() == Path(f"kquota-callback-{__version__}.1.jar")
    assert zipfile.is_zipfile(host.path(f"{JARS}/kquota-callback-{__version__}.jar"))


def test_a_jar_that_a_broker_is_started_with_outlives_further_upgrades(
    host: Host, upgraded: None, callback_package: Path, tmp_path: Path
):
    first = f"kquota-callback-{__version__}.jar"
    host.write("/etc/kquota-callback/broker.env", f'CLASSPATH="{JARS}/{first}"\n')
    host.dpkg("-i", next_version(callback_package, tmp_path, ".2"))
    assert {first, *(f"kquota-callback-{__version__}{end}.jar" for end in (".1", ".2"))} <= set(jars(host))

    host.path("/etc/kquota-callback/broker.env").unlink()
    host.dpkg("-i", next_version(callback_package, tmp_path, ".3"))
    assert first not in jars(host)
    host.dpkg("--force-downgrade", "-i", next_version(callback_package, tmp_path, ".1"))


@pytest.mark.parametrize(
    "line",
    [
        "client.quota.callback.class=org.kquota.KquotaCallback",
        " authorizer.class.name : org.kquota.KquotaAuthorizer",
    ],
)
@pytest.mark.parametrize("file", [PROPERTIES, "/etc/kafka/kraft/east/broker.properties"])
def test_it_is_not_removed_while_a_broker_needs_it(host: Host, upgraded: None, file: str, line: str):
    host.write(file, f"node.id=1\n{line}\n")
    told = host.dpkg("-r", "kquota-callback", code=1)
    assert "kquota-callback is in use" in told
    assert f"  {file}\n" in told
    assert host.status("kquota-callback") == "i"
    assert f"kquota-callback-{__version__}.1.jar" in jars(host)
    host.path(file).unlink()


def test_the_administrator_says_where_brokers_configurations_are(host: Host, upgraded: None):
    host.write("/srv/broker-1/my.properties", "client.quota.callback.class=org.kquota.KquotaCallback\n")
    listed = host.path(LIST).read_text("utf-8")
    host.write(LIST, f"{listed}/srv/*/my.properties\n")
    assert "  /srv/broker-1/my.properties\n" in host.dpkg("-r", "kquota-callback", code=1)
    host.path("/srv/broker-1/my.properties").unlink()


def test_once_no_broker_names_it_it_is_removed_and_purged(host: Host, upgraded: None):
    host.write(PROPERTIES, "node.id=1\n# client.quota.callback.class=org.kquota.KquotaCallback\n")
    host.dpkg("-r", "kquota-callback")
    assert jars(host) == []
    assert host.path(LIST).exists()
    host.dpkg("-P", "kquota-callback")
    assert not host.path(LIST).exists()
