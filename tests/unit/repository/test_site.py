"""The parts of the site: every page in the navigation, every link to an existing target."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.site.__main__ import NAVIGATION
from tools.site.elsewhere import loaded_from_elsewhere
from tools.site.staging import HOME, NotInTheNavigation, sections, stage


def test_every_page_of_the_navigation_is_staged_with_what_it_links_to(tmp_path: Path) -> None:
    pages = stage(REPOSITORY, tmp_path, NAVIGATION)
    assert Path("docs/tutorial.md") in pages
    assert (tmp_path / "schemas/usage.schema.json").is_file()
    assert (tmp_path / "docs/img/overshoot.svg").is_file()
    home = (tmp_path / HOME).read_text("utf-8")
    assert home.count("```{toctree}") == len(sections(NAVIGATION))
    assert "\nkquota in one page </README>\n" in home
    assert "\ntutorial\n" in home


def test_a_page_that_nobody_would_find_is_named(tmp_path: Path) -> None:
    navigation = tmp_path / "navigation.yml"
    text = NAVIGATION.read_text("utf-8")
    navigation.write_text(text.replace("  - docs/runbook.md\n", ""), "utf-8")
    with pytest.raises(NotInTheNavigation, match=r"docs/runbook\.md is not in it"):
        stage(REPOSITORY, tmp_path / "staged", navigation)


def test_what_a_page_loads_from_elsewhere_is_found(tmp_path: Path) -> None:
    harmless = '<a href="https://x.example">x</a><img src="../x.png"><link href="style.css">'
    (tmp_path / "good.html").write_text(harmless, "utf-8")
    assert loaded_from_elsewhere(tmp_path) == []
    (tmp_path / "bad.html").write_text('<script async src="https://x.example/a.js"></script>', "utf-8")
    (tmp_path / "bad.css").write_text('@import "//x.example"; a { b: url(http://x.example/f.woff) }', "utf-8")
    (tmp_path / "link.html").write_text('<link rel="stylesheet" href="//x.example/a.css">', "utf-8")
    assert len(loaded_from_elsewhere(tmp_path)) == 4
