"""The report of a volume's soft limit names its topics, however fast the volume fills."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota.disks.fill_rates import FillRates
from kquota.disks.server_properties import read_broker_properties
from kquota.guard.agent_state import AgentState, AgentStateFile
from kquota.guard.broker_host import BrokerHost
from kquota.guard.event_queue import readable
from kquota.guard.own_record import own_record
from kquota.guard.state_writer import StateWriter
from kquota.policy.decision import Scope
from kquota.policy.limits import Limit, LimitType
from kquota.policy.volume import Volume
from kquota.settings.model import BrokerSection, LimitsSection, Settings
from testbed.loopback.volumes import MIB, LoopVolume, VolumeSpec, make_loop_volume
from tests.integration.waiting import eventually

SOFT_SHARE = 0.5
SHARE_A_SECOND = 0.05  # of a volume of 1 TB these are 50 GB/s
AHEAD_SHARE = 0.03
"""How far the filling may be ahead of what the agent has seen, which otherwise looks several times meanwhile.
On a busy machine the filling waits for it."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LoopVolume]:
    volume = make_loop_volume(VolumeSpec(256 * MIB), tmp_path / "image", tmp_path / "data")
    yield volume
    # A probe process that is slow to end may still look at it.
    subprocess.run(["umount", "--lazy", volume.mount_point], check=True)


class Owner:
    """The local side of an agent, and its volume as the record has it."""

    def __init__(self, directory: Path, disk: LoopVolume, scope: Scope) -> None:
        self.log_dir = disk.mount_point / "kafka"
        self.log_dir.mkdir()
        for topic in ("orders", "visits"):
            (self.log_dir / f"{topic}-0").mkdir()
        (directory / "server.properties").write_text(f"node.id=1\nlog.dirs={self.log_dir}\n", "utf-8")
        self.settings = Settings(
            broker=BrokerSection(server_properties=directory / "server.properties"),
            kafka={"bootstrap.servers": "x:1"},
            limits=LimitsSection(
                soft=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 50),
                hard=Limit.of(LimitType.MIN_FREE_PERCENTAGE, 20),
            ),
            scope=scope,
            decision_file=directory / "decision.json",
            state_dir=directory,
        )
        self.seen_share = 0.0
        self._states = StateWriter(AgentStateFile(directory / "state.json"))
        self._fill_rates = FillRates()
        self.side = BrokerHost(
            self.settings,
            read_broker_properties(self.settings.broker.server_properties),
            self._states,
            AgentState(),
            lambda _key, _value, _headers: None,
            "kquota-1-",
        )
        self.side.wait_for_volumes(60)

    def cycle(self) -> tuple[Volume, tuple[str, ...] | None]:
        """Wait as the agent does, and observe; return the volume in the record, and the topics found."""
        readable(self.settings.sample_interval_seconds, self.side.alarm)
        volumes = self.side.observe().volumes
        record = own_record(
            volumes,
            self.settings.limits,
            (),
            release_margin=self.settings.release_margin_ratio,
            snapshot_at=datetime.now(UTC),
            fills=self._fill_rates.observe(volumes),
        )
        self.side.wake_at(record)
        volume = record.volumes[0]
        self.seen_share = volume.consumed_bytes / volume.capacity_bytes
        return volume, volumes[0].topics

    def close(self) -> None:
        self.side.close()
        self._states.close(60)


def fill(disk: LoopVolume, share: float) -> None:
    missing_bytes = round(share * disk.capacity_bytes()) - disk.consumed_bytes()
    with (disk.mount_point / "ballast").open("ab") as ballast:
        os.posix_fallocate(ballast.fileno(), os.fstat(ballast.fileno()).st_size, max(1, missing_bytes))


def fill_beyond_soft(disk: LoopVolume, from_share: float, owner: Owner) -> None:
    share = from_share
    while share < SOFT_SHARE + 0.02:
        fill(disk, share)
        time.sleep(0.1)
        if share - owner.seen_share < AHEAD_SHARE:
            share += SHARE_A_SECOND / 10


@pytest.mark.parametrize(("scope", "expected"), [(Scope.VOLUME, ("orders", "visits")), (Scope.CLUSTER, None)])
def test_the_list_is_there_when_a_fast_fill_crosses_the_soft_limit(
    disk: LoopVolume, tmp_path: Path, scope: Scope, expected: tuple[str, ...] | None
) -> None:
    owner = Owner(tmp_path, disk, scope)
    try:
        fill(disk, SOFT_SHARE - 0.08)
        for _ in range(5):
            assert owner.cycle()[1] is None, "far from the limit nothing is listed"
        filling = threading.Thread(
            target=fill_beyond_soft, args=(disk, SOFT_SHARE - 0.08, owner), daemon=True
        )
        filling.start()
        while (seen := owner.cycle())[0].headroom() == 1:
            assert seen[0].topics is None
        filling.join()
        assert seen[0].topics == expected
        (disk.mount_point / "ballast").unlink()
        eventually(lambda: owner.cycle()[1] is None, "with room again it is forgotten")
    finally:
        owner.close()
