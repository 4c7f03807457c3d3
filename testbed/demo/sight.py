"""The visible state of the cluster at one moment, and a thread that keeps observing it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kquota.formats.decision_reading import MalformedDecision, read_decision_document
from kquota.guard import decision_file
from kquota.guard.applied_state import AppliedState, read_applied_state
from kquota.host.safe_read import Refusal
from kquota.policy.decision import Decision, Mode, State
from kquota.policy.limits import LimitPair
from testbed.demo.place import Broker
from testbed.loopback.plug_in import BrokerFiles

LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class VolumeSight:
    """One volume, and where its limits lie."""

    name: str
    capacity_bytes: int
    consumed_bytes: int
    soft_bytes: int
    hard_bytes: int
    headroom: float


@dataclass(frozen=True, slots=True)
class BrokerSight:
    """One broker; its agent's decision and its plug-in's applied state, if there are any."""

    broker_id: int
    running: bool
    volumes: tuple[VolumeSight, ...]
    decision: Decision | None
    applied: AppliedState | None

    def enforces(self, state: State) -> bool:
        """Whether producers of this broker are really held at that state (or let through, for OPEN)."""
        applied = self.applied
        return applied is not None and applied.mode is Mode.ENFORCE and applied.state is state


@dataclass(frozen=True, slots=True)
class Sight:
    """The cluster at one moment (CLOCK_MONOTONIC, in seconds)."""

    at: float
    brokers: tuple[BrokerSight, ...]

    @property
    def volumes(self) -> list[tuple[int, VolumeSight]]:
        """All volumes with their broker's id."""
        return [(broker.broker_id, volume) for broker in self.brokers for volume in broker.volumes]

    def all_enforce(self, state: State) -> bool:
        """Whether every broker does."""
        return all(broker.enforces(state) for broker in self.brokers)

    @property
    def breached(self) -> bool:
        """Whether any volume is over its hard limit."""
        return any(volume.headroom <= 0 for _, volume in self.volumes)

    @property
    def worst_decision(self) -> Decision | None:
        """The decision with the smallest headroom that any agent has written."""
        decisions = [broker.decision for broker in self.brokers if broker.decision is not None]
        return min(decisions, key=lambda decision: decision.headroom, default=None)

    @property
    def lost_decisions(self) -> list[str]:
        """In sentences, which plug-ins have no decision in force, and why."""
        return [
            f"broker {broker.broker_id} has no decision in force: {broker.applied.lost}"
            for broker in self.brokers
            if broker.applied is not None and broker.applied.lost is not None
        ]


class Lookout:
    """A thread that looks twenty times a second and hands each sight to `notice`."""

    def __init__(
        self,
        nodes: Sequence[Broker],
        limits: LimitPair,
        files: Mapping[int, BrokerFiles],
        notice: Callable[[Sight], None],
    ) -> None:
        self._nodes = nodes
        self._limits = limits
        self._files = files
        self._notice = notice
        self._devices = {volume.mount_point: volume.device for node in nodes for volume in node.volumes}
        self._stopping = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._keep_looking, name="lookout", daemon=True)
        self.latest = self.look()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        self._thread.join()

    def look(self) -> Sight:
        """Look once."""
        return Sight(time.monotonic(), tuple(self._broker(node) for node in self._nodes))

    def check(self) -> None:
        """Raise the error that ended the thread, if any: otherwise its end would go unnoticed."""
        if self._failure is not None:
            raise self._failure

    def _keep_looking(self) -> None:
        try:
            while not self._stopping.wait(LOOK_SECONDS):
                self.latest = self.look()
                self._notice(self.latest)
        except Exception as error:
            self._failure = error

    def _broker(self, node: Broker) -> BrokerSight:
        files = self._files.get(node.node_id)
        return BrokerSight(
            broker_id=node.node_id,
            running=node.running(),
            volumes=self._volumes(node),
            decision=None if files is None else read_decision(files.decision),
            applied=None if files is None else read_applied(node.node_id, files),
        )

    def _volumes(self, node: Broker) -> tuple[VolumeSight, ...]:
        sights = []
        for volume in node.volumes:
            capacity_bytes, consumed_bytes = volume.capacity_bytes(), volume.consumed_bytes()
            bounds = self._limits.bounds(capacity_bytes)
            sights.append(
                VolumeSight(
                    name=self._devices[volume.mount_point],
                    capacity_bytes=capacity_bytes,
                    consumed_bytes=consumed_bytes,
                    soft_bytes=int(bounds.soft_bytes),
                    hard_bytes=int(bounds.hard_bytes),
                    headroom=float(bounds.headroom(consumed_bytes)),
                )
            )
        return tuple(sights)


def read_applied(broker_id: int, files: BrokerFiles) -> AppliedState | None:
    """The state that the plug-in of that broker reports; None if it reports nothing, or nothing recent."""
    applied = read_applied_state(files.applied, files.clock.now(), broker_id=broker_id)
    return applied if isinstance(applied, AppliedState) else None


def read_decision(path: Path) -> Decision | None:
    """The decision in a decision file; None where there is none to read."""
    document = decision_file.read(path)
    if isinstance(document, Refusal):
        return None
    try:
        return read_decision_document(document)
    except MalformedDecision:
        return None
