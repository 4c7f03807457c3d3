"""Virtual environments that another user can read, whatever root's umask is."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fleet.roles.plays import PROGRAMS, run_play
from tests.unit.repository.tree import REPOSITORY

ROLES = {"kquota_agent": "tasks/install_wheels.yml", "kquota_pipeline": "tasks/install.yml"}
VERSION = "0.1.0"


def make_wheel(folder: Path, name: str) -> str:
    """Write a wheel with one module and no more; return its line of a list of requirements."""
    module = name.replace("-", "_")
    information = f"{module}-{VERSION}.dist-info"
    files = {
        f"{module}/__init__.py": f'__version__ = "{VERSION}"\n',
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in files) + f"{information}/RECORD,,\n"
    wheel = folder / f"{module}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in (files | {f"{information}/RECORD": record}).items():
            archive.writestr(file, text)
    return f"{name}=={VERSION} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def installation(role: str, folder: Path) -> tuple[list[dict[str, Any]], dict[str, object]]:
    """The role's tasks that make the virtual environment, in the folder, and their variables."""
    texts = (
        (REPOSITORY / "roles" / role / part).read_text("utf-8") for part in (ROLES[role], "vars/main.yml")
    )
    tasks, given = (yaml.safe_load(text.replace("/opt/kquota", str(folder / "home"))) for text in texts)
    (looks,) = (at for at, task in enumerate(tasks) if task["name"].endswith("Get the installed version"))
    changed = {"ansible.builtin.set_fact": {f"{role}_wheels_copy": {"changed": False}}}
    variables = {
        f"{role}_pip": given[f"{role}_pip"],
        f"{role}_python": str(PROGRAMS / "python"),
        f"{role}_version": VERSION,
        f"{role}_home": str(folder / "home"),
        f"{role}_host_wheels": str(folder / "wheels"),
        "ansible_python_interpreter": str(PROGRAMS / "python"),
    }
    return [changed, *tasks[looks : looks + 2]], variables


def closed(home: Path) -> list[str]:
    """Files that another user can't read, or can write."""
    found = []
    for path in (home, *home.rglob("*")):
        mode, wanted = path.stat().st_mode, 0o005 if path.is_dir() else 0o004
        if not path.is_symlink() and (mode & wanted != wanted or mode & 0o022):
            found.append(str(path))
    return found


@pytest.mark.parametrize("role", ["kquota_agent", pytest.param("kquota_pipeline", marks=pytest.mark.long)])
def test_another_user_reads_what_was_installed_with_a_strict_umask(role: str, tmp_path: Path) -> None:
    home, wheels = tmp_path / "home", tmp_path / "wheels"
    wheels.mkdir()
    names = ("kquota", "kquota-pipeline", "pyspark")
    (wheels / "wheels.txt").write_text("".join(make_wheel(wheels, name) for name in names))
    tasks, variables = installation(role, tmp_path)
    before = os.umask(0o077)
    try:
        run_play(tmp_path, tasks, variables)
        assert closed(home) == []
        assert "changed=0 " in run_play(tmp_path, tasks, variables)
        # As a run with that umask leaves it that gives no rights.
        for path in home.rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o077)
        run_play(tmp_path, tasks, variables)
        assert closed(home) == []
    finally:
        os.umask(before)
