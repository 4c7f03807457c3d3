"""Apache Kafka as it is."""

from __future__ import annotations

from typing import ClassVar

from conformance.loopback import LoopbackSystem


class Tried(LoopbackSystem):
    """Nothing is added, and nothing holds producers."""

    name: ClassVar[str] = "stock"
    description: ClassVar[str] = "Apache Kafka alone."

    def versions(self) -> tuple[str, ...]:
        """Return none: Kafka's own is known."""
        return ()
