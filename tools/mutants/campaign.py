"""What tests do differently in a campaign of mutants: a pytest plug-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# A failure is enough; nobody reads the smallest example of it.
settings.register_profile("a failure is enough", phases=(Phase.explicit, Phase.generate), database=None)
settings.load_profile("a failure is enough")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run quick tests first: most mutants are dead by then."""
    stats = Path("mutmut-stats.json")
    if stats.exists():
        seconds = json.loads(stats.read_text())["duration_by_test"]
        items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))
