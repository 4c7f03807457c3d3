"""Reading the marks that name the statement a test proves."""

from __future__ import annotations

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.acceptance.marks import java_marks, python_marks


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tests/unit/test_it.py", "@pytest.mark.accepts('A1')\ndef helper(): ..."),
        ("tests/unit/test_it.py", "@pytest.mark.accepts('A1')\nclass Cases:\n  def test_a(self): ..."),
        ("tests/unit/test_it.py", "@pytest.mark.accepts('A1')\nclass TestNothing: ..."),
        ("tests/unit/test_it.py", "def outer():\n  @pytest.mark.accepts('A1')\n  def test_a(): ..."),
        ("tests/unit/test_it.py", "pytestmark = pytest.mark.accepts('A1')"),
        ("tests/unit/test_it.py", "MARK = pytest.mark.accepts('A1')\n@MARK\ndef test_a(): ..."),
        ("tests/unit/cases.py", "@pytest.mark.accepts('A1')\ndef test_a(): ..."),
    ],
)
def test_a_mark_where_pytest_finds_no_test_is_reported(path, source):
    marks, [problem] = python_marks(path, source)
    assert marks == []
    assert problem.startswith(f"{path}:")
    assert problem.endswith("the mark stands on no test function of its module")


@pytest.mark.parametrize("arguments", ["", "ID", "'A1', ID", "*IDS", "'A1', id='A2'", "1"])
def test_a_mark_that_does_not_name_its_statements_literally_is_reported(arguments):
    marks, problems = python_marks(
        "tests/unit/test_it.py", f"@pytest.mark.accepts({arguments})\ndef test_a(): ..."
    )
    assert marks == []
    assert problems == ["tests/unit/test_it.py:1: the mark must name its statements as literal texts"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('    @Tag("A1")\n    void helper() {}', "3: the tag stands on something that is no test"),
        ('    @Tag("A1")\n    int field = 3;', "3: the tag stands on something that is no test"),
        (
            '    @Tag("A1")\n    class In {\n    }\n    @Test\n    void a() {}',
            "3: the tag stands on something that is no",
        ),
        ('    @Test @Tag("A1")\n    void a() {}', "3: a tag stands alone in its line"),
        ('    @Tag("A1") @Test\n    void a() {}', "3: a tag stands alone in its line"),
        ('    @Tags({@Tag("A1")})\n    @Test\n    void a() {}', "3: a tag stands alone in its line"),
        ('    @Tag("A1") // why\n    @Test\n    void a() {}', "3: a tag stands alone in its line"),
        ("    @Test\n    @Tag(Ids.A1)\n    void a() {}", "4: a tag stands alone in its line"),
        ('    @Test\n    @Tag("a1")\n    void a() {}', "4: a tag stands alone in its line"),
        ('    @Tag("A1")\n    @Test void a() {}\n', "4: a tag stands alone in its line, and so does @Test"),
    ],
)
def test_a_tag_that_is_unclear_or_proves_nothing_is_reported(source, problem):
    _, problems = java_marks("ItTest.java", f"// a file\nclass ItTest {{\n{source}\n}}\n")
    assert [entry for entry in problems if entry.startswith(f"ItTest.java:{problem}")] != []


def test_every_tag_of_this_repository_is_read():
    for path in (REPOSITORY / "callback/src/test").rglob("*.java"):
        source = path.read_text("utf-8")
        marks, problems = java_marks("ItTest.java", source)
        assert problems == []
        tags = [line for line in source.splitlines() if "@Tag" in line and '"long"' not in line]
        assert len({mark.line for mark in marks}) == len(tags), path
