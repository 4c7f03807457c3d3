"""The site loads nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from tools.site.elsewhere import loaded_from_elsewhere


def test_what_a_page_loads_from_elsewhere_is_found(tmp_path: Path) -> None:
    harmless = '<a href="https://x.example">x</a><img src="../x.png"><link href="style.css">'
    (tmp_path / "good.html").write_text(harmless, "utf-8")
    assert loaded_from_elsewhere(tmp_path) == []
    (tmp_path / "bad.html").write_text('<script async src="https://x.example/a.js"></script>', "utf-8")
    (tmp_path / "bad.css").write_text('@import "//x.example"; a { b: url(http://x.example/f.woff) }', "utf-8")
    (tmp_path / "link.html").write_text('<link rel="stylesheet" href="//x.example/a.css">', "utf-8")
    assert len(loaded_from_elsewhere(tmp_path)) == 4
