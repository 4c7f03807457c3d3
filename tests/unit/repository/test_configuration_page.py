"""The page of configuration keys: made from the model and the example file."""

from __future__ import annotations

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.reference.configuration import UnexplainedKey, render_page


def example() -> str:
    return (REPOSITORY / "packaging/agent.yml.example").read_text("utf-8")


@pytest.mark.parametrize(
    ("removed", "problem"),
    [
        ("state_dir: /var/lib/kquota\n", "state_dir is not in the example file"),
        ("# The agent's memory across restarts.\n", "state_dir has no comment in the example file"),
    ],
)
def test_a_key_that_is_not_explained_is_named(removed, problem):
    assert removed in example()
    with pytest.raises(UnexplainedKey, match=problem):
        render_page(example().replace(removed, ""))
