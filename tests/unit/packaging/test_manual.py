"""The manual pages are made of the pages of reference."""

from __future__ import annotations

import pytest
import typer

from kquota.cli.main import application
from tools.manual import roff
from tools.manual.__main__ import FILES, main, pages
from tools.manual.page import UnknownMarkdown, paragraph
from tools.reference.commands import leaves
from tools.reference.configuration import all_keys

PAGES = pages("2026-01-31")


def plain(page: str) -> str:
    """Return what a reader sees of the escapes that the pages use."""
    for escape, character in {
        "\\-": "-",
        "\\(aq": "'",
        "\\(dq": '"',
        "\\fB": "",
        "\\fI": "",
        "\\fP": "",
    }.items():
        page = page.replace(escape, character)
    return page


def test_every_command_has_its_section_with_its_options():
    page = plain(PAGES["kquota.1"])
    root = typer.main.get_command(application())
    for command, context in leaves(root, root.make_context("kquota", [], resilient_parsing=True)):
        section = page.split(f'.SH "{context.command_path}"\n')[1].split("\n.SH ")[0]
        for parameter in command.params:
            assert parameter.name == "help" or any(option in section for option in parameter.opts), section
    assert "\n.TP\n--version\nPrint the version.\n" in page
    assert "\n.TP\n--for <str>\nHow long: 90s, 30m, 2h, 1d; at most 30d. [required].\n" in page


def test_exit_codes_and_files_are_items():
    page = plain(PAGES["kquota.1"])
    for tag in ("0", "1", "2", "78", *FILES):
        assert f"\n.TP\n{tag}\n" in page


def test_every_key_has_its_item():
    page = plain(PAGES["kquota-agent.yml.5"])
    for key in all_keys():
        assert f"\n.TP\n{key.name}\n" in page, key.name
    assert "A volume that does not answer for this long has failed." in page


@pytest.mark.parametrize("name", sorted(PAGES))
def test_no_mark_of_another_language_is_left(name: str):
    assert not any(mark in PAGES[name] for mark in ("`", "](", "\n|", "\n#", "&lt;", "<!--"))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (".yml", "\\&.yml"),
        ("'quoted' at the start", "\\(aqquoted\\(aq at the start"),
        ("a\\b --c", "a\\eb \\-\\-c"),
    ],
)
def test_no_text_is_taken_for_a_request(words: str, line: str):
    assert roff.text(words) == line


def test_a_form_that_is_not_known_is_refused_rather_than_garbled():
    with pytest.raises(UnknownMarkdown):
        list(paragraph(["```yaml", "never: closed"], fresh=True, macro=".PP"))


def test_the_same_sources_give_the_same_pages(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert main([str(tmp_path / "a")]) == main([str(tmp_path / "b")]) == 0
    pages = {page.name: page.read_bytes() for page in (tmp_path / "a").iterdir()}
    assert sorted(pages) == ["kquota-agent.yml.5", "kquota.1"]
    assert pages == {page.name: page.read_bytes() for page in (tmp_path / "b").iterdir()}
    assert b'"1970-01-02"' in pages["kquota.1"]
