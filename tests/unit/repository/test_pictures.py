"""Pictures of terminals are drawn from real output, and load nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from kquota.display.status_view import status_view
from tests.unit.display.documents import troubled
from tools.pictures.svg import save_svg


def test_a_terminal_s_picture_says_what_the_terminal_says(tmp_path: Path) -> None:
    file = tmp_path / "status.svg"
    save_svg(status_view(troubled(), 80), file, columns=80, title="kquota status")
    text = "".join(ElementTree.parse(file).getroot().itertext()).replace("\xa0", " ")
    for part in ("PAUSE", "decided", "BROKER", "/dev/sda1", "kquota status"):
        assert part in text
    again = tmp_path / "again" / "status.svg"
    again.parent.mkdir()
    save_svg(status_view(troubled(), 80), again, columns=80, title="kquota status")
    assert again.read_bytes() == file.read_bytes()
