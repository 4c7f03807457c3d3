"""Reading the marks that name the statement a test proves."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.acceptance.marks import Mark, java_marks, python_marks

Read = tuple[list[Mark], list[str]]


def python(source: str, path: str = "tests/unit/test_it.py") -> Read:
    return python_marks(path, dedent(source))


def java(source: str) -> Read:
    return java_marks("ItTest.java", dedent(source))


def pairs(read: Read) -> set[tuple[str, str]]:
    assert read[1] == []
    return {(mark.test, mark.statement_id) for mark in read[0]}


def test_a_mark_on_a_function_names_every_statement_that_it_proves():
    read = python(
        """
        import pytest

        @pytest.mark.accepts("A1", "A2")
        @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.accepts("A3"))])
        def test_one(x): ...

        def test_other(): ...
        """
    )
    assert pairs(read) == {("test_one", "A1"), ("test_one", "A2"), ("test_one", "A3")}


def test_a_mark_on_a_class_or_module_counts_for_each_of_its_tests():
    read = python(
        """
        from pytest import mark

        pytestmark = [mark.accepts("F1")]

        @mark.accepts("F2")
        class TestHost:
            pytestmark = mark.accepts("F3")

            def test_a(self): ...

            async def test_b(self): ...

            def helper(self): ...

        def test_c(): ...
        """
    )
    in_class = {(f"TestHost::{test}", id_) for test in ("test_a", "test_b") for id_ in ("F1", "F2", "F3")}
    assert pairs(read) == {*in_class, ("test_c", "F1")}


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
    marks, [problem] = python(source, path)
    assert marks == []
    assert problem.startswith(f"{path}:")
    assert problem.endswith("the mark stands where pytest finds no test")


@pytest.mark.parametrize("arguments", ["", "ID", "'A1', ID", "*IDS", "'A1', id='A2'", "1"])
def test_a_mark_that_does_not_name_its_statements_literally_is_reported(arguments):
    marks, problems = python(f"@pytest.mark.accepts({arguments})\ndef test_a(): ...")
    assert marks == []
    assert problems == ["tests/unit/test_it.py:1: the mark must name its statements as literal texts"]


def test_a_tag_belongs_to_the_test_after_it_and_that_of_a_class_to_each_of_its_tests():
    read = java(
        """
        package org.kquota;

        /** Not a class Outer. */
        @Tag("C8")
        final class ItTest extends Base {
            @TempDir Path folder;
            record Case(String name, int size) {
            }

            @Test
            @Tag("A1")
            @Tag("A2")
            void first() throws Exception {
                new Thread(() -> { run(); }).start();
            }

            @Override
            public void close() {
                release();
            }

            @ParameterizedTest(name = "{0}")
            @CsvSource({
                "1, (",
                "2, }"
            })
            @Tag("A3")
            @Tag("long")
            void second(
                String text) {
            }

            @Nested
            @Tag("C12")
            class WhenClosed {
                @Test
                void third() {
                }
            }

            // not the one before
            @Test
            void fourth() {
            }
        }
        """
    )
    own = {("first", "A1"), ("first", "A2"), ("second", "A3"), ("WhenClosed::third", "C12")}
    of_the_class = {(test, "C8") for test in ("first", "second", "WhenClosed::third", "fourth")}
    assert pairs(read) == {(f"ItTest::{test}", id_) for test, id_ in own | of_the_class}


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
    _, problems = java(f"// a file\nclass ItTest {{\n{source}\n}}\n")
    assert [entry for entry in problems if entry.startswith(f"ItTest.java:{problem}")] != []


def test_every_tag_of_this_repository_is_read():
    for path in (REPOSITORY / "callback/src/test").rglob("*.java"):
        source = path.read_text("utf-8")
        marks, problems = java_marks("ItTest.java", source)
        assert problems == []
        tags = [line for line in source.splitlines() if "@Tag" in line and '"long"' not in line]
        assert len({mark.line for mark in marks}) == len(tags), path
