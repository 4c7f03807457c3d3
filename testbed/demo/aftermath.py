"""The effect of a full disk on Kafka when producers are not held: seen on volumes and in brokers' logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.demo.sight import Sight
from testbed.loopback.clients import PartitionHealth
from testbed.loopback.volumes import MIB

FULL_BELOW_BYTES = MIB
_OFFLINE = re.compile(r"Stopping serving logs in dir (\S+)")
_NO_SPACE = "No space left on device"


class BrokerLog:
    """Reads what a broker has logged since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new_lines(self) -> list[str]:
        """Complete lines only; the rest comes with the next look."""
        with self._path.open("rb") as log:
            log.seek(self._offset)
            content = log.read()
        complete = content[: content.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete.decode(errors="replace").splitlines()


@dataclass
class Aftermath:
    """The facts so far; `notice` returns new ones as sentences."""

    logs: dict[int, BrokerLog]
    first_full_at: float | None = None
    full_volumes: set[str] = field(default_factory=set)
    offline_log_dirs: set[tuple[int, str]] = field(default_factory=set)
    """By broker id: hosts have the same paths."""
    no_space_errors: int = 0
    dead_brokers: set[int] = field(default_factory=set)
    leaderless: set[tuple[str, int]] = field(default_factory=set)
    """Partitions that had no leader at some moment, by topic."""

    def notice(self, sight: Sight) -> list[str]:
        """Take a sight and the new lines of the logs into account."""
        news = []
        for broker_id, volume in sight.volumes:
            free_bytes = volume.capacity_bytes - volume.consumed_bytes
            if free_bytes < FULL_BELOW_BYTES and volume.name not in self.full_volumes:
                self.full_volumes.add(volume.name)
                self.first_full_at = sight.at if self.first_full_at is None else self.first_full_at
                news.append(f"volume {volume.name} of broker {broker_id} is full")
        for broker_id, log in self.logs.items():
            news += self._read(broker_id, log)
        for broker in sight.brokers:
            if not broker.running and broker.broker_id not in self.dead_brokers:
                self.dead_brokers.add(broker.broker_id)
                news.append(f"broker {broker.broker_id} has shut itself down: it has no log dir left")
        return news

    def notice_partitions(self, partitions: Sequence[PartitionHealth]) -> list[str]:
        """Take the state of the partitions into account."""
        leaderless = {(entry.topic, entry.partition) for entry in partitions if entry.leader is None}
        lost = leaderless - self.leaderless
        self.leaderless |= lost
        return [
            f"partition {partition} of {topic} has no leader: it can't be written or read"
            for topic, partition in sorted(lost)
        ]

    def _read(self, broker_id: int, log: BrokerLog) -> list[str]:
        news = []
        for line in log.new_lines():
            self.no_space_errors += _NO_SPACE in line
            offline = _OFFLINE.search(line)
            if offline and (broker_id, offline[1]) not in self.offline_log_dirs:
                self.offline_log_dirs.add((broker_id, offline[1]))
                news.append(f"broker {broker_id} takes log dir {Path(offline[1]).parent.name} offline")
        return news
