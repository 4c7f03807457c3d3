"""The reference pages match the code of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.reference.__main__ import main


def test_every_page_of_this_repository_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    result = main(["--check"])
    assert result == 0, capsys.readouterr().err


def test_a_page_that_the_code_has_overtaken_is_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    metrics = tmp_path / "docs" / "metrics.md"
    metrics.write_text(metrics.read_text("utf-8").replace("kquota_state", "kquota_stage"), "utf-8")
    assert main(["--check"], tmp_path) == 1
    assert "metrics.md is stale" in capsys.readouterr().err
