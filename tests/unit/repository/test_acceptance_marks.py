"""Reading the marks that say which statement a test proves."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tools.acceptance.java_tags import read_java_tags
from tools.acceptance.marks import Marks
from tools.acceptance.python_marks import read_python_marks


def python(source: str, path: str = "tests/unit/test_it.py") -> Marks:
    return read_python_marks(path, dedent(source))


def java(source: str) -> Marks:
    return read_java_tags("callback/src/test/java/ItTest.java", dedent(source))


def pairs(marks: Marks) -> set[tuple[str, str]]:
    return {(mark.test, mark.statement_id) for mark in marks.good}


def test_a_mark_on_a_function_names_every_statement_that_it_proves():
    marks = python(
        """
        import pytest

        @pytest.mark.accepts("A1", "A2")
        @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.accepts("A3"))])
        def test_one(x): ...

        def test_other(): ...
        """
    )
    assert pairs(marks) == {("test_one", "A1"), ("test_one", "A2"), ("test_one", "A3")}
    assert marks.bad == ()


def test_a_mark_on_a_class_or_module_counts_for_each_of_its_tests():
    marks = python(
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
    assert pairs(marks) == {*in_class, ("test_c", "F1")}
    assert marks.bad == ()


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
    marks = python(source, path)
    assert marks.good == ()
    assert [bad.problem for bad in marks.bad] == ["the mark stands where pytest finds no test"]


@pytest.mark.parametrize("arguments", ["", "ID", "'A1', ID", "*IDS", "'A1', id='A2'", "1"])
def test_a_mark_that_does_not_name_its_statements_literally_is_reported(arguments):
    marks = python(f"@pytest.mark.accepts({arguments})\ndef test_a(): ...")
    assert [bad.problem for bad in marks.bad] == ["the mark must name its statements as literal texts"]
    assert str(marks.bad[0]).startswith("tests/unit/test_it.py:1: ")


def test_a_tag_belongs_to_the_test_method_after_it():
    marks = java(
        """
        package org.kquota;

        class ItTest {
            @TempDir Path folder;
            private static final Pattern P = Pattern.compile("@Tag(\\"A9\\")");
            // @Tag("A9")
            /* @Tag("A9") */

            @Test
            @Tag("A1")
            @Tag("A2")
            void first() throws Exception {
                new Thread(() -> { run(); }).start();
            }

            @Override
            public void close() {
                for (int i = 0; i < 3; i++) {
                    release();
                }
            }

            @ParameterizedTest(name = "{0}")
            @CsvSource({"1, (", "2, }"})
            @Tags({@Tag("A3"), @Tag("slow")})
            void second(String text) {
            }

            @org.junit.jupiter.api.Test
            void untagged() {
                String text = \"""
                    } @Tag("A9")
                    \""";
                char brace = '}';
            }
        }
        """
    )
    assert pairs(marks) == {("ItTest::first", "A1"), ("ItTest::first", "A2"), ("ItTest::second", "A3")}
    assert marks.bad == ()


def test_a_tag_on_a_class_counts_for_each_of_its_test_methods():
    marks = java(
        """
        @Tag("C8")
        final class ItTest extends Base {
            record Case(String name, int size) {
            }

            @Nested
            @Tag("C12")
            class WhenClosed {
                @Test
                void releasesEverything() {
                }
            }

            @Test
            void doesNoInput() {
            }

            private void helper() {
            }
        }
        """
    )
    assert pairs(marks) == {
        ("ItTest::WhenClosed::releasesEverything", "C8"),
        ("ItTest::WhenClosed::releasesEverything", "C12"),
        ("ItTest::doesNoInput", "C8"),
    }
    assert marks.bad == ()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ('class T { @Tag("A1") void helper() {} }', "the tag stands on helper, which is no test"),
        ('class T { @Tag("A1") int field = 3; }', "the tag stands on something that is no test"),
        ('@Tag("A1") class T { void helper() {} }', "the tag stands on the class T, which has no test"),
        ("class T { @Test @Tag(Ids.A1) void a() {} }", "the tag is neither a statement's id nor a word"),
        ('class T { @Test @Tag("a1") void a() {} }', "the tag is neither a statement's id nor a word"),
    ],
)
def test_a_tag_that_proves_nothing_is_reported(source, problem):
    marks = java(source)
    assert marks.good == ()
    assert [bad.problem for bad in marks.bad] == [problem]
