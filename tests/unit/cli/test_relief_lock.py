"""The lock of `kquota relief --apply` and `--undo`: what is said where there can be none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.command import Host


@pytest.mark.parametrize("what", ["--apply", "--undo"])
def test_without_a_place_for_the_lock_no_plan_is_used(tmp_path: Path, what: str) -> None:
    host = Host(tmp_path)
    missing = tmp_path / "missing"
    host.configure(state_dir=str(missing))
    said = host.run("relief", what, str(tmp_path / "plan.json"))
    assert said.code == 1
    assert said.err == (
        f"kquota: {missing / 'relief.lock'}, which keeps two plans from being used at once, can't be locked:"
        " No such file or directory\n"
    )


def test_the_lock_is_taken_before_the_plan_is_read(tmp_path: Path) -> None:
    host = Host(tmp_path)
    said = host.run("relief", "--undo", str(tmp_path / "plan.json"))
    assert (said.code, said.err) == (
        1,
        f"kquota: {tmp_path / 'plan.json'} can't be read: No such file or directory\n",
    )
    assert (tmp_path / "state" / "relief.lock").exists()
