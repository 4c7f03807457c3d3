"""Where it was measured."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Machine:
    """Cores, memory, kernel, and what was measured on them."""

    cores: int
    memory_bytes: int
    kernel: str
    java: str
    kafka_version: str
    kquota_version: str
    peer: str

    def __str__(self) -> str:
        """One line, for people."""
        return (
            f"{self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB of memory, Linux {self.kernel}, "
            f"{self.java}, Kafka {self.kafka_version}, kquota {self.kquota_version}, {self.peer}"
        )


def this_machine(*, java: str, kafka_version: str, kquota_version: str, peer: str) -> Machine:
    """The one we run on."""
    return Machine(
        cores=os.cpu_count() or 0,
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        java=java,
        kafka_version=kafka_version,
        kquota_version=kquota_version,
        peer=peer,
    )
