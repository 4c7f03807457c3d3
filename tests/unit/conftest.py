"""For all unit tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.no_processes import no_processes


@pytest.fixture(autouse=True)
def _no_processes() -> Iterator[None]:
    with no_processes():
        yield
