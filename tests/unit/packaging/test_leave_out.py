"""The parts of its requirements that the agent's package leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.packages.leave_out import leave_out

LIST = (REPOSITORY / "packaging/nfpm/agent/left-out.txt").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("kept/code.py", "kept/code.pyi", "gone/code.py", "kept-1.0.dist-info/METADATA"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", "utf-8")
    (tmp_path / "kept-1.0.dist-info/RECORD").write_text(
        'kept/code.py,sha256=a,1\nkept/code.pyi,sha256=b,1\n"gone/a,b.py",,\n../../bin/kept,,\nkept-1.0.dist-info/RECORD,,\n',
        "utf-8",
    )
    return tmp_path


def test_what_is_listed_goes_and_the_record_lists_what_stays(folder: Path) -> None:
    leave_out("# a comment\n\ngone  no code imports it\n**/*.pyi  types\n", folder)
    assert {path.name for path in folder.rglob("*")} == {
        "kept",
        "code.py",
        "kept-1.0.dist-info",
        "METADATA",
        "RECORD",
    }
    record = (folder / "kept-1.0.dist-info/RECORD").read_text("utf-8")
    assert record == "kept/code.py,sha256=a,1\nkept-1.0.dist-info/RECORD,,\n"


def test_a_glob_that_matches_nothing_is_an_error(folder: Path) -> None:
    with pytest.raises(SystemExit, match=r"^other\* matches nothing"):
        leave_out("other*  renamed by its authors\n", folder)


def test_each_line_of_the_list_has_its_reason() -> None:
    lines = [line for line in LIST.splitlines() if not line.startswith("#")]
    assert lines
    assert all(len(line.split()) > 1 for line in lines)
