"""promtool, out of Debian's package."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.monitoring.promtool import REPOSITORY


@pytest.fixture(scope="session")
def promtool() -> Path:
    done = subprocess.run(
        [REPOSITORY / "tools/promtool.sh"], stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    return Path(done.stdout.strip())
