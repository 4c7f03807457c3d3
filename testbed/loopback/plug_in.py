"""The plug-in in the brokers of a loopback cluster, and the files between it and their agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kquota.host.boot_clock import BootClock
from testbed.loopback.certificates import principal_of
from testbed.loopback.node import NodeLayout, node_name

CALLBACK, FENCE = "client.quota.callback.class", "authorizer.class.name"
"""The broker properties that name the plug-in's classes."""


def classes_of(*, has_metrics: bool = True) -> dict[str, str]:
    """The plug-in's classes, for a Kafka that has a place for metrics of plug-ins (since 4.1) or none."""
    if has_metrics:
        return {CALLBACK: "org.kquota.KquotaCallback", FENCE: "org.kquota.KquotaAuthorizer"}
    return {CALLBACK: "org.kquota.CallbackWithoutMetrics", FENCE: "org.kquota.AuthorizerWithoutMetrics"}


FENCE_PROPERTIES = {FENCE: classes_of()[FENCE], "kquota.fence.authorizer.class": "none"}
"""The fence in a cluster without an authorizer; the plug-in has to be loaded, too."""


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """Where one broker's agent writes its decision and its plug-in what it applies."""

    decision: Path
    applied: Path
    clock: BootClock = field(default_factory=BootClock, compare=False)
    """The clock of leases where they are: a host may have a boot of its own."""


def broker_files(layout: NodeLayout) -> BrokerFiles:
    """Both files below a node's directory, each in a directory of its writer's."""
    directory = layout.directory
    return BrokerFiles(directory / "kquota" / "decision.json", directory / "kquota-broker" / "applied.json")


def agent_name(broker_id: int) -> str:
    """The common name in the certificate of a broker's agent."""
    return f"kquota-agent-{broker_id}"


OPERATOR = "kquota-operator"
"""The common name in the certificate of an operator who gives orders."""


def write_operator_properties(path: Path, configuration: Mapping[str, str]) -> Path:
    """Write the client properties of an operator, for `--command-config`."""
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}={value}\n" for name, value in configuration.items()), "utf-8")
    return path


def principals_of(broker_ids: Iterable[int]) -> list[str]:
    """The agents of these brokers, the brokers themselves, and operators: who must never be held."""
    ids = list(broker_ids)
    names = [name(broker_id) for name in (agent_name, node_name) for broker_id in ids]
    return [principal_of(name) for name in (*names, OPERATOR)]


def loaded_plug_in(
    exempt: Iterable[str], callback: str = classes_of()[CALLBACK]
) -> Callable[[NodeLayout, int], dict[str, str]]:
    """Load the plug-in, in enforce mode: for `ClusterSpec.node_properties`.

    The returned function makes the directories of the files that its properties name.
    """
    principals = ";".join(exempt)

    def properties(layout: NodeLayout, _node_id: int) -> dict[str, str]:
        files = broker_files(layout)
        for path in (files.decision, files.applied):
            path.parent.mkdir(mode=0o755)
        return {
            CALLBACK: callback,
            "kquota.mode": "enforce",
            "kquota.decision.file": str(files.decision),
            "kquota.applied.file": str(files.applied),
            "kquota.exempt.principals": principals,
        }

    return properties
