"""Strimzi's quota plug-in: a quota callback in each broker, which asks all brokers for their free space."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from bench.maven import PEER, ensure_peer_jars
from conformance.loopback import LoopbackSystem
from conformance.system import Limits

_PREFIX = "client.quota.callback.static"
_CHECK_SECONDS = 2
"""The shortest interval that works: 1 switches the checks off."""


class Tried(LoopbackSystem):
    """One limit for each volume; it knows no soft one."""

    name: ClassVar[str] = "strimzi"
    description: ClassVar[str] = (
        f"Strimzi's quota plug-in (io.strimzi:kafka-quotas-plugin), with the hard limit for each volume, "
        f"and a check every {_CHECK_SECONDS} s, the shortest interval that works."
    )

    def versions(self) -> tuple[str, ...]:
        """Return the plug-in's."""
        return (PEER,)

    def class_path(self) -> tuple[Path, ...]:
        """Return the plug-in with its libraries."""
        return ensure_peer_jars()

    def properties(self, limits: Limits, bootstrap_servers: str) -> Mapping[str, str]:
        """Return the plug-in's properties."""
        return {
            "client.quota.callback.class": "io.strimzi.kafka.quotas.StaticQuotaCallback",
            f"{_PREFIX}.kafka.admin.bootstrap.servers": bootstrap_servers,
            f"{_PREFIX}.storage.per.volume.limit.min.available.bytes": str(limits.hard_left_bytes),
            f"{_PREFIX}.storage.check-interval": str(_CHECK_SECONDS),
        }
