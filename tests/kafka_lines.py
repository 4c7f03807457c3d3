"""The lines of Kafka that are supported, as tools/kafka-lines.mk lists them."""

from __future__ import annotations

import re
from pathlib import Path

_LIST = Path(__file__).resolve().parents[1] / "tools" / "kafka-lines.mk"


def listed(name: str) -> list[str]:
    """The versions in one of its lists, oldest first."""
    (found,) = re.findall(rf"^{name} := (.*)$", _LIST.read_text("utf-8"), re.MULTILINE)
    return found.split()


KAFKA_LINES = listed("KAFKA_LINES")
