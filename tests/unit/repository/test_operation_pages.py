"""Operators run the commands of the pages as they are: each play, tag, command and option in them exists."""

from __future__ import annotations

import re
import shlex

import pytest
import typer

from kquota.cli.main import application
from tests.unit.repository.tree import REPOSITORY, shown

PAGES = [*sorted((REPOSITORY / "docs").glob("*.md")), *sorted(REPOSITORY.glob("roles/*/README.md"))]
CODE = re.compile(r"^```sh\n(.*?)^```|`([^`\n]+)`", re.DOTALL | re.MULTILINE)


def code_of(text: str) -> list[str]:
    """Return the commands of a page, a line each."""
    dedented = re.sub(r"^ +", "", text, flags=re.MULTILINE)
    code = "\n".join(block or span for block, span in CODE.findall(dedented))
    return code.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_each_play_tag_and_entry_point_that_a_page_names_exists(page):
    plays = "\n".join(path.read_text("utf-8") for path in (REPOSITORY / "playbooks").rglob("*.yml"))
    roles = "\n".join(path.read_text("utf-8") for path in REPOSITORY.glob("roles/*/tasks/main.yml"))
    for line in code_of(page.read_text("utf-8")):
        for name in re.findall(r"playbooks/(\w+\.yml)", line):
            assert (REPOSITORY / "playbooks" / name).is_file(), line
        for tag in re.findall(r"--tags (\w+)", line):
            assert re.search(rf"tags: \[.*\b{tag}\b|^ +- {tag}$", plays + roles, re.MULTILINE), line
        for role, tasks in re.findall(r"name=(\w+) tasks_from=(\w+)", line):
            assert (REPOSITORY / "roles" / role / "tasks" / f"{tasks}.yml").is_file(), line


@pytest.mark.parametrize("name", ["runbook", "operation", "alerts"])
def test_each_command_of_a_page_has_its_options(name):
    lines = code_of((REPOSITORY / "docs" / f"{name}.md").read_text("utf-8"))
    found = [line for line in lines if re.match(r"kquota [a-z]+", line)]
    assert found
    for line in found:
        words = shlex.split(re.split(r"&&|#|\|", line)[0].replace("…", "X"))[1:]
        command = typer.main.get_command(application(words[0]))
        while words and words[0] in (commands := getattr(command, "commands", {})):
            command = commands[words.pop(0)]
        assert not getattr(command, "commands", {}) or not words or words[0] == "--help", line
        options = {option for one in command.params for option in one.opts}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, line
