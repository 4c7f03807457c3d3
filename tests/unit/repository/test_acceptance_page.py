"""The page statement → tests, from end to end on a small repository, and this repository's own statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.acceptance.__main__ import main
from tools.acceptance.marks import collect_marks
from tools.acceptance.pages import proofs_of, statuses
from tools.acceptance.statements import read_statements

STATEMENTS = """\
sources: {kip-13: "KIP-13, Quotas", ours: kquota itself}
sections:
  - title: Client quotas
    source: kip-13
    statements:
      B1: {statement: "There is a delay.", decided: "Two seconds."}
      B2: {statement: "There is none.", source: ours}
"""
PROOF = """\
import pytest


@pytest.mark.accepts("B1")
def test_delay(): ...
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "docs/acceptance.yml").write_text(STATEMENTS)
    (tmp_path / "tests/unit/test_delay.py").write_text(PROOF)
    return tmp_path


def page(repository: Path, name: str = "acceptance.md") -> str:
    return (repository / "docs/evidence" / name).read_text()


def test_a_statement_about_real_parts_is_proven_by_tests_on_them_alone(repository, capsys):
    about_real_parts = STATEMENTS.replace("    statements:", "    on_real_parts: true\n    statements:")
    (repository / "docs/acceptance.yml").write_text("real_parts: [tests/integration/]\n" + about_real_parts)
    assert main([], repository) == 0
    assert "| in part by [1 test](acceptance-tests.md#b1) |" in page(repository)
    assert capsys.readouterr().out == (
        "0 of 2 statements are proven by tests, 1 more in part.\nIn part: B1\nPlanned: B2\n"
    )
    (repository / "tests/integration").mkdir()
    (repository / "tests/integration/test_delay.py").write_text(PROOF)
    assert main([], repository) == 0
    assert "| proven by [2 tests](acceptance-tests.md#b1) |" in page(repository)


def test_a_mark_with_an_unknown_id_fails_and_names_its_place(repository, capsys):
    (repository / "tests/unit/test_delay.py").write_text(PROOF.replace("B1", "B3"))
    assert main([], repository) == 1
    assert "tests/unit/test_delay.py:4: B3 is no statement of docs/acceptance.yml" in capsys.readouterr().err


def test_every_mark_of_this_repository_is_known_and_every_statement_proven():
    statements = read_statements(REPOSITORY / "docs/acceptance.yml")
    marks, problems = collect_marks(REPOSITORY, statements.by_id)
    assert problems == []
    assert set(statuses(statements, proofs_of(marks)).values()) == {"proven"}
