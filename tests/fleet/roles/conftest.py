"""The plug-in, which validates what the roles write."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import ensure_kafka_runtime


@pytest.fixture(scope="session")
def plug_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The role's variables with the paths of the plug-in and Kafka on this machine."""
    home: Path = tmp_path_factory.mktemp("kafka")
    (home / "libs").symlink_to(ensure_kafka_runtime(report=print).jars)
    return {"kquota_callback_jar": str(find_callback_jar()), "kquota_callback_kafka_home": str(home)}
