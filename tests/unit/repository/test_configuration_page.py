"""The page of configuration keys: made from the model and the example file."""

from __future__ import annotations

import pytest

from tests.unit.repository.tree import REPOSITORY
from tools.reference.configuration import UnexplainedKey, all_keys, render_page
from tools.reference.example import read_example

TEXT = """\
# the title
#
# The head goes on
# over two lines.
#
# A second paragraph.

# --- First part ---------

# What alpha is.
#   sample: 1
#     deeper: 2
alpha: {}

# not about gamma

outer:
  # What beta is.
  beta: 1
  gamma: 2
# --- Second part ---
# What delta is.
delta: [1]
"""


def example() -> str:
    return (REPOSITORY / "packaging/agent.yml.example").read_text("utf-8")


def test_a_comment_belongs_to_the_key_after_it():
    head, explanations = read_example(TEXT)
    assert head == ["The head goes on over two lines.", "A second paragraph."]
    assert {key: entry.prose for key, entry in explanations.items()} == {
        "alpha": ["What alpha is."],
        "outer": [],
        "outer.beta": ["What beta is."],
        "outer.gamma": [],
        "delta": ["What delta is."],
    }
    assert explanations["alpha"].sample == ["sample: 1", "  deeper: 2"]
    assert explanations["outer"].sample == ["beta: 1", "gamma: 2"]
    assert [entry.section for entry in explanations.values()] == ["First part"] * 4 + ["Second part"]


def test_every_key_of_the_settings_is_on_the_page_with_its_default():
    page = render_page(example())
    keys = all_keys()
    assert {"broker.server_properties", "limits.volumes", "lease_seconds"} <= {key.name for key in keys}
    for key in keys:
        section = page.split(f"### `{key.name}`\n")[1].split("\n#")[0]
        assert f"- allowed: {key.allowed}\n" in section
        assert f"- default: {'none' if key.default is None else f'`{key.default}`'}" in section
    assert [key.name for key in keys if key.default is None] == ["broker.server_properties", "kafka"]


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
