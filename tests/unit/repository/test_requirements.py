"""Each requirement is used by the product that requires it."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import packages_distributions

from tests.unit.repository.tree import REPOSITORY


def canonical(name: str) -> str:
    """The name of a distribution as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_agent_imports_each_of_its_requirements() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = project["dependencies"] + project["optional-dependencies"]["agent"]
    required = {canonical(re.split(r"[^A-Za-z0-9._-]", one)[0]) for one in requirements}
    modules = set()
    for path in (REPOSITORY / "agent").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add((node.module or "").partition(".")[0])
    owners = packages_distributions()
    imported = {canonical(name) for module in modules for name in owners.get(module, ())}
    assert required - imported == set()
