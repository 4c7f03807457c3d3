"""With kquota_release_signers, the roles install only files of a list that a trusted signer has signed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

PACKAGE = "kquota-callback_0.1.0_all.deb"
WHEEL = "pipeline-wheels/kquota-0.1.0-py3-none-any.whl"
FILES = {
    PACKAGE: b"the plug-in",
    "kquota_0.1.0-1~deb12_amd64.deb": b"the agent",
    "kquota-callback-0.1.0.jar": b"the jar",
    WHEEL: b"a wheel",
    "pipeline-jars/delta.jar": b"a jar",
    "agent-wheels/3.11/wheels.txt": b"names with digests",
}
# Roles, and the variables that select the files that they install.
INSTALLED = {
    "agent": ("kquota_agent", {}),
    "agent from wheels": ("kquota_agent", {"kquota_agent_install_method": "wheels"}),
    "plug-in": ("kquota_callback", {}),
    "plug-in's jar": ("kquota_callback", {"kquota_callback_install_method": "jar"}),
    "pipeline": ("kquota_pipeline", {}),
}


def key(folder: Path, name: str) -> Path:
    """Make a key; return the private one."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True
    )
    return folder / name


def sign(dist: Path, with_key: Path) -> None:
    environment = {**os.environ, "KQUOTA_RELEASE_KEY": str(with_key)}
    for program in ("list.sh", "sign.sh"):
        subprocess.run([REPOSITORY / "tools/release" / program, dist], check=True, env=environment)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """A signed folder of packages; its signer is in `signers` next to it, and its key in `builder`."""
    folder = tmp_path / "dist"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    builder = key(tmp_path, "builder")
    allowed = f'builds@example.org namespaces="kquota-release" {builder.with_suffix(".pub").read_text()}'
    (tmp_path / "signers").write_text(allowed)
    sign(folder, builder)
    return folder


FACTS = {
    "os_family": "Debian",
    "distribution": "Debian",
    "distribution_version": "12.5",
    "distribution_major_version": "12",
    "architecture": "x86_64",
}


def install(dist: Path, role: str = "kquota_callback", **variables: object) -> str:
    """Run the role's check of what it would install from the folder."""
    verification = {"name": role, "tasks_from": "preflight_release"}
    given = {
        "ansible_facts": FACTS,
        "kquota_agent_node": {"python": {"version": "3.11"}},
        "kquota_dist_dir": str(dist),
        "kquota_release_signers": str(dist.parent / "signers"),
    }
    return run_play(dist.parent, [{"ansible.builtin.include_role": verification}], given | variables)


@pytest.mark.parametrize("what", INSTALLED)
def test_files_of_the_signed_list_are_installed(dist: Path, what: str) -> None:
    role, variables = INSTALLED[what]
    assert "changed=0" in install(dist, role, **variables)


def test_an_altered_file_is_refused_with_both_checksums(dist: Path) -> None:
    (dist / PACKAGE).write_bytes(b"another plug-in")
    wanted, found = (sha256(content).hexdigest() for content in (FILES[PACKAGE], b"another plug-in"))
    with pytest.raises(PlayFailed, match=rf"{PACKAGE}\s[^$]*{wanted}[^$]*{found}"):
        install(dist)


def _another_list(dist: Path) -> None:
    (dist / PACKAGE).write_bytes(b"another plug-in")
    signature = (dist / "SHA256SUMS.sig").read_bytes()
    subprocess.run([REPOSITORY / "tools/release/list.sh", dist], check=True)
    (dist / "SHA256SUMS.sig").write_bytes(signature)


def _another_signer(dist: Path) -> None:
    sign(dist, key(dist.parent, "stranger"))


def _another_use(dist: Path) -> None:
    (dist / "SHA256SUMS.sig").unlink()
    command = [
        "ssh-keygen",
        "-q",
        "-Y",
        "sign",
        "-n",
        "git",
        "-f",
        dist.parent / "builder",
        dist / "SHA256SUMS",
    ]
    subprocess.run(command, check=True)


def _expired_signer(dist: Path) -> None:
    signers = dist.parent / "signers"
    signers.write_text(signers.read_text().replace("namespaces", 'valid-before="20200101",namespaces'))


@pytest.mark.parametrize("alter", [_another_list, _another_signer, _another_use, _expired_signer])
def test_a_list_that_no_trusted_signer_has_signed_is_refused(
    dist: Path, alter: Callable[[Path], None]
) -> None:
    alter(dist)
    with pytest.raises(PlayFailed, match=r"SHA256SUMS\.sig\s+is\s+not\s+a\s+valid\s+signature"):
        install(dist)


def test_a_list_without_a_signature_is_refused(dist: Path) -> None:
    (dist / "SHA256SUMS.sig").unlink()
    with pytest.raises(PlayFailed, match=r"has\s+no\s+signature"):
        install(dist)


def test_a_file_that_is_not_in_the_list_is_refused(dist: Path) -> None:
    (dist / "pipeline-wheels/more.whl").write_bytes(b"")
    with pytest.raises(PlayFailed, match=r"more\.whl\s+is\s+not\s+in\s"):
        install(dist, "kquota_pipeline")


def test_the_roles_refuse_before_they_change_anything(dist: Path, tmp_path: Path) -> None:
    (dist / PACKAGE).write_bytes(b"another plug-in")
    cache = tmp_path / "cache"
    task = {"ansible.builtin.include_role": {"name": "kquota_callback", "tasks_from": "install"}}
    given = {
        "ansible_facts": FACTS,
        "kquota_dist_dir": str(dist),
        "kquota_release_signers": str(tmp_path / "signers"),
        "kquota_callback_cache_dir": str(cache),
    }
    with pytest.raises(PlayFailed, match=r"is\s+not\s+the\s+file\s+of\s+the\s+release") as failed:
        run_play(tmp_path, [task], given)
    assert "changed=0" in str(failed.value)
    assert not cache.exists()


def test_without_signers_nothing_is_verified(dist: Path) -> None:
    (dist / PACKAGE).write_bytes(b"another plug-in")
    assert "skipped=1" in install(dist, kquota_release_signers="")
