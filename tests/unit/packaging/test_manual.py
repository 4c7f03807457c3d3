"""The manual pages are made of the very texts of --help and of the example."""

from __future__ import annotations

import pytest

from kquota.cli.main import COMMANDS
from tools.configuration.page import all_keys
from tools.manual import roff
from tools.manual.__main__ import EXAMPLE, main
from tools.manual.command_page import render_command_page
from tools.manual.configuration_page import UnknownMarkdown, _paragraph, render_configuration_page

DATE = "2026-01-31"


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


def test_every_command_has_its_part():
    page = plain(render_command_page(DATE))
    for name in (
        *COMMANDS.commands,
        "config check",
        "config show",
        "hold pause",
        "hold open",
        "hold release",
    ):
        assert f'.SS "kquota {name} ' in page, name


def test_options_are_explained_as_help_does():
    page = plain(render_command_page(DATE))
    assert "\n.TP\n--for <str>\nHow long: 90s, 30m, 2h, 1d; at most 30d.  [required]\n" in page


def test_every_key_has_its_item():
    page = plain(render_configuration_page(EXAMPLE.read_text("utf-8"), DATE))
    for key in all_keys():
        assert f"\n.TP\n{key.name}\n" in page, key.name
    assert "A volume that does not answer for so long has failed." in page


def test_no_mark_of_another_language_is_left():
    page = render_configuration_page(EXAMPLE.read_text("utf-8"), DATE)
    assert not any(mark in page for mark in ("`", "](", "\n|", "\n#", "&lt;"))


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
        list(_paragraph(["```yaml", "never: closed"], fresh=True, macro=".PP"))


def test_the_same_sources_give_the_same_pages(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert main([str(tmp_path / "a")]) == main([str(tmp_path / "b")]) == 0
    pages = {page.name: page.read_bytes() for page in (tmp_path / "a").iterdir()}
    assert sorted(pages) == ["kquota-agent.yml.5", "kquota.1"]
    assert pages == {page.name: page.read_bytes() for page in (tmp_path / "b").iterdir()}
    assert b'"1970-01-02"' in pages["kquota.1"]
