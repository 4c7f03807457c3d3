"""The requirements of a scenario on its place: loopback, or hosts with a systemd of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from testbed.demo.plan import Plan
from testbed.loopback.plug_in import BrokerFiles
from testbed.loopback.volumes import LoopVolume


class Broker(Protocol):
    """A broker that is looked at."""

    @property
    def node_id(self) -> int:
        """Its id."""

    @property
    def volumes(self) -> tuple[LoopVolume, ...]:
        """The volumes of its log dirs, in their order, as this machine sees them."""

    @property
    def log(self) -> Path:
        """Its log."""

    def running(self) -> bool:
        """Whether the process that was there when the play began still is."""


class Cluster(Protocol):
    """A running cluster, and how applications reach it."""

    @property
    def path(self) -> Path:
        """A directory; its content goes with the cluster."""

    @property
    def brokers(self) -> Sequence[Broker]:
        """Its brokers, by id."""

    def client_configuration(self) -> Mapping[str, str]:
        """librdkafka properties of an application."""

    def administrator_configuration(self) -> Mapping[str, str]:
        """librdkafka properties of a user with all permissions."""

    def environment(self) -> Mapping[str, str]:
        """Environment for further processes: it makes them end with the cluster."""


class Place(Protocol):
    """A cluster, and kquota in it if it is protected: an agent per broker, a plug-in inside."""

    @property
    def plan(self) -> Plan:
        """The plan of the scenario."""

    @property
    def protected(self) -> bool:
        """Whether there is kquota."""

    @property
    def cluster(self) -> Cluster:
        """Where it is played."""

    @property
    def files(self) -> Mapping[int, BrokerFiles]:
        """Per broker; empty without kquota."""

    def check_agents(self) -> None:
        """See that no agent has ended.

        Raises:
            AgentFailed: one has.
        """
