"""Properties of every document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.repository.tree import REPOSITORY, shown, source_files

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)
ADR_FOLDER = REPOSITORY / "docs/adr"


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", source_files("*.md"), ids=shown)
def test_every_link_inside_the_repository_leads_somewhere(document):
    broken = []
    for link in LINK.findall(without_code(document.read_text("utf-8"))):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = document if not path else (document.parent / path).resolve()
        exists = target.exists() and target.is_relative_to(REPOSITORY)
        if not exists or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_decision_is_listed_once_in_the_index():
    index = ADR_FOLDER / "README.md"
    listed = sorted(link for link in LINK.findall(index.read_text("utf-8")) if re.match(r"\d", link))
    assert listed == sorted(path.name for path in ADR_FOLDER.glob("[0-9]*.md"))


def test_decisions_are_numbered_without_a_gap_and_named_in_the_index_as_in_their_files():
    files = sorted(ADR_FOLDER.glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1))
    index = (ADR_FOLDER / "README.md").read_text("utf-8")
    for path in files:
        title = path.read_text("utf-8").splitlines()[0].removeprefix("# ")
        assert title.startswith(f"{path.name[:4]}: "), shown(path)
        assert f"- [{title}]({path.name})" in index, shown(path)


def test_every_decision_has_the_parts_that_a_reader_looks_for():
    for adr in ADR_FOLDER.glob("[0-9]*.md"):
        text = adr.read_text("utf-8")
        assert re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", adr.name), f"{shown(adr)}: four digits and words"
        for part in ("\n## Context\n", "\n## Decision\n", "\n**Rejected", "\n## Consequences\n"):
            assert part in text, f"{shown(adr)} lacks {part.strip()}"
        assert re.search(r"^Status: (proposed|accepted)$", text, re.MULTILINE), shown(adr)
        assert len(text.split()) <= 700, f"{shown(adr)} takes more than a page"


def test_every_make_target_that_a_document_names_exists():
    targets = set(TARGET.findall((REPOSITORY / "Makefile").read_text("utf-8")))
    for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md"):
        named = set(re.findall(r"(?m)(?:^|`)make ([a-z][a-z-]*)", (REPOSITORY / name).read_text("utf-8")))
        assert named - targets == set(), name
