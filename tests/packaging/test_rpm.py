"""The packages for EL, read and installed by rpm, on a Debian with EL 9's Python. Test follows test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota import __version__
from tests.packaging.suite import DIST, REPOSITORY, RPM, Host
from tests.packaging.test_agent_package import CONFIGURATION, DECISION, ENABLED, EVERY_MODULE

pytestmark = pytest.mark.long

PLUG_IN = DIST / f"kquota-callback-{__version__}-1.noarch.rpm"
JARS = "/usr/share/java"
PROPERTIES = "/etc/kafka/server.properties"
LINKED = "/usr/lib64/python3.12/site-packages/systemd"
# The same files, in the places that each distribution has for them.
PLACES = {
    "/usr/share/doc/kquota/copyright": "/usr/share/licenses/kquota/LICENSE",
    "/usr/share/zsh/vendor-completions/_kquota": "/usr/share/zsh/site-functions/_kquota",
}
DEBIAN_ONLY = {"/usr/share/doc/kquota/changelog.Debian.gz", "/usr/share/lintian/overrides/kquota"}
PRESET = "/usr/lib/systemd/system-preset/80-kquota.preset"


def package(release: str) -> Path:
    (found,) = DIST.glob(f"kquota-{__version__}-1.{release}.*.rpm")
    return found


def query(file: Path, *what: str) -> str:
    return subprocess.run([*RPM, "-qp", *what, file], check=True, capture_output=True, text=True).stdout


def deb(file: Path, *what: str) -> str:
    return subprocess.run(["dpkg-deb", *what, file], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def el(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """A host without dpkg's ways for units."""
    made = subprocess.run(
        [REPOSITORY / "tools/packages/suite-root.sh", "bookworm", "run"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    root = tmp_path_factory.mktemp("host") / "root"
    subprocess.run(["cp", "-a", "--reflink=auto", made.stdout.strip(), root], check=True)
    for name in ("deb-systemd-helper", "deb-systemd-invoke"):
        (root / "usr/bin" / name).unlink()
    yield Host(root)
    shutil.rmtree(root.parent)


@pytest.fixture(scope="module")
def installed(el: Host) -> str:
    return el.rpm("-i", "--nodeps", package("el9"))


@pytest.fixture(scope="module")
def plug_in(el: Host) -> None:
    el.rpm("-i", PLUG_IN)


@pytest.fixture(scope="module")
def upgraded(el: Host, plug_in: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    el.rpm("-U", next_plug_in(tmp_path_factory.mktemp("upgrade"), ".1"))


def next_plug_in(folder: Path, suffix: str) -> Path:
    """Return the plug-in's package with a higher version."""
    version = f"{__version__}{suffix}"
    jar = REPOSITORY / f"callback/target/kquota-callback-{__version__}.jar"
    command = [REPOSITORY / ".venv/bin/nfpm", "package", "--config", "packaging/nfpm/callback.yml"]
    names = {"KQUOTA_VERSION": version, "KQUOTA_JAR_VERSION": version, "KQUOTA_JAR": str(jar)}
    subprocess.run(
        [*command, "--packager", "rpm", "--target", folder],
        check=True,
        capture_output=True,
        cwd=REPOSITORY,
        env=os.environ | names,
    )
    return folder / f"kquota-callback-{version}-1.noarch.rpm"


@pytest.mark.parametrize(
    ("release", "needed"),
    [
        ("el9", {"/usr/bin/python3.11", "glibc >= 2.34", "systemd", "systemd-libs"}),
        ("el10", {"/usr/bin/python3.12", "glibc >= 2.34", "systemd", "python3-systemd"}),
    ],
)
def test_it_requires_the_python_that_it_was_made_for(built: None, release: str, needed: set[str]):
    requires = query(package(release), "--requires").splitlines()
    assert {line for line in requires if not line.startswith("rpmlib(")} == needed


def test_nothing_of_this_machine_is_in_the_headers(built: None):
    for file in (package("el9"), package("el10"), PLUG_IN):
        assert query(file, "--changelog") == ""
        assert query(file, "--queryformat", "%{BUILDHOST} %{VENDOR}") == "localhost The kquota authors"
        owners = query(file, "--queryformat", "[%{FILEUSERNAME} %{FILEGROUPNAME}\n]")
        assert set(owners.splitlines()) == {"root root"}
        assert str(REPOSITORY) not in query(file, "--xml")


def test_it_has_the_files_and_scripts_of_the_deb(built: None):
    (debian,) = DIST.glob(f"kquota_{__version__}-1~deb12_*.deb")
    of_deb = {
        line.split()[5].lstrip(".").rstrip("/")
        for line in deb(debian, "--contents").splitlines()
        if not line.startswith("d") or "./opt/kquota" in line
    }
    of_rpm = set(query(package("el9"), "--list").splitlines())
    assert of_rpm == {PLACES.get(name, name) for name in of_deb - DEBIAN_ONLY} | {PRESET}
    scripts = query(package("el9"), "--scripts")
    for name in ("postinst", "prerm", "postrm"):
        assert (REPOSITORY / f"packaging/nfpm/agent/{name}").read_text("utf-8").strip() in scripts


def test_it_unpacks_into_an_empty_root(built: None, tmp_path: Path):
    root = Host(tmp_path / "root")
    root.path("/proc").mkdir(parents=True)
    root.rpm("-i", "--nodeps", "--noscripts", package("el10"), PLUG_IN)
    assert root.rpm("-V", "--nodeps", "kquota", "kquota-callback") == ""


@pytest.mark.parametrize("name", ["el10", "noble"])
def test_where_no_suite_has_its_python_the_distribution_brings_systemd_s_module(
    built: None, name: str, tmp_path: Path
):
    if name == "noble":
        (file,) = DIST.glob(f"kquota_{__version__}-1~ubuntu24.04_*.deb")
        subprocess.run(["dpkg-deb", "--extract", file, tmp_path], check=True)
        depends = deb(file, "--field").partition("Depends: ")[2].splitlines()[0]
        assert {"python3.12", "python3 (<< 3.13~)", "python3-systemd"} <= set(depends.split(", "))
        linked = "/usr/lib/python3/dist-packages/systemd"
    else:
        Host(tmp_path).path("/proc").mkdir()
        Host(tmp_path).rpm("-i", "--nodeps", "--noscripts", package("el10"))
        linked = LINKED
    packages = tmp_path / "opt/kquota/lib/python3.12/site-packages"
    assert (packages / "systemd").readlink() == Path(linked)
    assert (tmp_path / "opt/kquota/bin/python3").readlink() == Path("/usr/bin/python3.12")
    compiled = {path.name for path in packages.rglob("*.so")}
    named = {tag for file_name in compiled for tag in re.findall(r"cpython-(\d+)", file_name)}
    assert named == {"312"}
    # The installation compiles its modules.
    assert (tmp_path / "opt/kquota/compile").exists()
    assert not list(packages.rglob("*.pyc"))


def test_its_libraries_need_no_newer_c_library_than_el_9_has(el: Host, installed: str):
    needed: set[tuple[int, ...]] = set()
    for library in el.path("/opt/kquota/lib").rglob("*.so*"):
        shown = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
        needed |= {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_(\d[\d.]*)", shown)}
    assert (2, 14) < max(needed) <= (2, 34)


def test_the_agent_is_whole_on_the_python_that_it_requires(el: Host, installed: str):
    assert el.run("kquota", "--version").stdout == f"kquota {__version__}\n"
    modules = el.run("/opt/kquota/bin/python3", "-I", "-c", EVERY_MODULE).stdout.split()
    assert {"kquota.cli.main", "kquota.service.daemon"} <= set(modules)
    el.run("/opt/kquota/bin/python3", "-I", "-c", "import systemd.daemon, systemd.journal, confluent_kafka")


def test_the_user_the_directory_and_the_unit_are_there(el: Host, installed: str):
    assert el.run("id", "-gn", "kquota").stdout == "kquota\n"
    assert el.run("stat", "-c", "%U %G %a", "/etc/kquota").stdout == "root kquota 751\n"
    assert el.path(ENABLED).is_symlink()
    assert "write /etc/kquota/agent.yml" in installed
    assert "The kquota agent has started" in el.run("journalctl", "--list-catalog").stdout


def test_an_upgrade_keeps_what_was_disabled(el: Host, installed: str):
    el.write("/etc/kquota/agent.yml", CONFIGURATION)
    el.run("systemctl", "disable", "kquota-agent")
    el.rpm("-U", "--nodeps", "--replacepkgs", package("el9"))
    assert not el.path(ENABLED).is_symlink()
    assert el.run("kquota", "--version").stdout == f"kquota {__version__}\n"


def test_it_is_erased_only_when_no_broker_enforces_its_decisions(el: Host, installed: str):
    el.run("systemctl", "enable", "kquota-agent")
    el.write(DECISION, '{"sequence": 1, "mode": "enforce"}\n')
    shown = el.rpm("-e", "kquota", code=1)
    assert "kquota is in use" in shown
    assert f"  {DECISION}\n" in shown
    el.run("kquota", "--version")

    el.write(DECISION, '{"sequence": 2, "mode": "observe"}\n')
    el.rpm("-e", "kquota")
    assert not el.path("/opt/kquota").exists()
    assert not el.path("/usr/bin/kquota").is_symlink()
    assert not el.path(ENABLED).is_symlink()
    assert el.path("/etc/kquota/agent.yml").read_text("utf-8") == CONFIGURATION


def test_an_upgrade_keeps_the_jar_that_a_running_broker_was_started_with(el: Host, upgraded: None):
    first, second = (f"kquota-callback-{version}.jar" for version in (__version__, f"{__version__}.1"))
    assert {path.name for path in el.path(JARS).iterdir()} == {first, second, "kquota-callback.jar"}
    assert el.path(f"{JARS}/kquota-callback.jar").readlink() == Path(second)
    assert not el.path("/var/lib/kquota-callback").exists()


def test_the_plug_in_is_not_erased_while_a_broker_needs_it(el: Host, upgraded: None):
    el.write(PROPERTIES, "client.quota.callback.class=org.kquota.KquotaCallback\n")
    assert f"  {PROPERTIES}\n" in el.rpm("-e", "kquota-callback", code=1)
    el.path(PROPERTIES).unlink()
    el.rpm("-e", "kquota-callback")
    assert not list(el.path(JARS).glob("kquota*"))
