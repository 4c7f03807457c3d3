"""The stage on hosts: Kafka as a service of systemd on three of them, and kquota by playbooks/rollout.yml."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AclBinding  # type: ignore[attr-defined]

from kquota import __version__
from kquota.host.boot_clock import BootClock
from testbed.demo.loopback_stage import BROKER_IDS, AgentFailed
from testbed.demo.plan import Plan
from testbed.demo.steps import Step, Steps
from testbed.hosts.fleet import Fleet
from testbed.hosts.host import Host, HostFailed
from testbed.hosts.image import ensure_image
from testbed.hosts.rollout import (
    AGENT,
    ANSIBLE,
    BROKER,
    REPOSITORY,
    RESIDENT,
    SHARED,
    journal,
    play,
    property_of,
    write_inventory,
)
from testbed.hosts.spec import HostSpec, VolumeSpec
from testbed.loopback.clients import admin_client
from testbed.loopback.plug_in import BrokerFiles
from testbed.loopback.processes import ChildProcess
from testbed.loopback.runtime import KafkaRuntime
from testbed.loopback.volumes import MIB, LoopVolume
from testbed.loopback.workspace import ENVIRONMENT_MARK

_CLIENTS_PORT = 9092
_METADATA = VolumeSpec(path="/data/metadata", size_mebibytes=64)
_APPLICATION = "User:CN=application"
_CONSUMER_GROUP = "kquota-demo"
_PATIENCE_SECONDS = 30.0
_TAIL = "--lines=25"
"""Of what a unit has left in the journal."""


class NotSetUp(Exception):
    """Something that a make target makes is missing; the message names it."""


class SuiteUnsupported(Exception):
    """There are no packages for the Debian of this machine; the message lists the existing ones."""


def require_what_make_makes(*, protected: bool) -> None:
    """Check for Ansible and the packages, before minutes have passed.

    Raises:
        NotSetUp: something is missing.
    """
    if not ANSIBLE.exists():
        raise NotSetUp(f"{ANSIBLE} is missing: run `make deps-fleet`")
    packages = (f"kquota_{__version__}-1~deb*.deb", f"kquota-callback_{__version__}_all.deb")
    if protected and not all(any((REPOSITORY / "dist").glob(name)) for name in packages):
        raise NotSetUp("dist/ lacks the packages of this version: run `make packages`")


def own_suite() -> str:
    """The suite of this machine's Debian, which its packages are built for.

    Raises:
        SuiteUnsupported: it is another than Debian 12 or 13.
    """
    suite = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    if suite not in {"bookworm", "trixie"}:
        raise SuiteUnsupported(f"packages are built on Debian 12 and 13, this is '{suite or 'unknown'}'")
    return suite


def host_specs(plan: Plan, suite: str, jars: Path) -> list[HostSpec]:
    """A host for each broker, with the plan's volumes and one for the metadata log."""
    return [
        HostSpec.model_validate(
            {
                "name": f"broker-{broker_id}",
                "suite": suite,
                "volumes": [
                    *(
                        VolumeSpec(path=f"/data/disk-{number}", size_mebibytes=volume.size_bytes // MIB)
                        for number, volume in enumerate(plan.volumes[broker_id], start=1)
                    ),
                    _METADATA,
                ],
                "shows": {"/opt/kafka/libs": jars},
            }
        )
        for broker_id in BROKER_IDS
    ]


def data_paths(spec: HostSpec) -> list[str]:
    """Where a host has the volumes of its log dirs."""
    return [volume.path for volume in spec.volumes if volume != _METADATA]


def inventory_settings(plan: Plan, spec: HostSpec) -> dict[str, object]:
    """The inventory's variables in addition to those of every throw-away Kafka; `spec` is any host's."""
    limits = plan.limits
    return {
        "kafka_log_dirs": [f"{path}/kafka" for path in data_paths(spec)],
        "kafka_properties": plan.broker_properties,
        # As on loopback: all compilers, since without the one for long runs TLS would be all that is seen.
        "kafka_java_options": "-XX:TieredStopAtLevel=4",
        # This machine does not know the hosts by their names.
        "kafka_clients_host": "{{ ansible_host }}",
        "kquota_agent_limits": {"hard": limits.hard.to_document(), "soft": limits.soft.to_document()},
        "kquota_scope": plan.scope.value,
    }


class HostProcess:
    """The main process of a unit as it was found; systemd may start another when it has ended."""

    def __init__(self, host: Host, unit: str) -> None:
        """Find it.

        Raises:
            HostFailed: the unit has no process.
        """
        pid = int(property_of(host, unit, "MainPID"))
        if pid == 0:
            raise HostFailed(f"{host.name}: {unit} does not run\n{journal(host, _TAIL, unit=unit)}")
        self._seen_at = host.inside(f"/proc/{pid}")

    def running(self) -> bool:
        """Whether it has not ended."""
        return self._seen_at.exists()


@dataclass(frozen=True)
class HostBroker:
    """The broker of a host, as this machine sees it."""

    node_id: int
    volumes: tuple[LoopVolume, ...]
    log: Path
    process: HostProcess

    def running(self) -> bool:
        """Whether the process that was there when the play began still is."""
        return self.process.running()


@dataclass(frozen=True)
class HostsCluster:
    """The brokers of a fleet, and how to reach them from this machine."""

    fleet: Fleet
    path: Path
    brokers: tuple[HostBroker, ...] = ()

    def client_configuration(self) -> dict[str, str]:
        """librdkafka properties of an application, which has to be permitted what it does."""
        return self._configuration("application")

    def administrator_configuration(self) -> dict[str, str]:
        """librdkafka properties of the cluster's administrator."""
        return self._configuration("admin")

    def environment(self) -> dict[str, str]:
        """Environment that makes a process end with the fleet."""
        return {**os.environ, ENVIRONMENT_MARK: str(self.fleet.path)}

    def _configuration(self, name: str) -> dict[str, str]:
        authority = self.path / "kafka-authority"
        addresses = [f"{host.address}:{_CLIENTS_PORT}" for host in self.fleet.values()]
        return {
            "bootstrap.servers": ",".join(addresses),
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority / "ca.pem"),
            "ssl.certificate.location": str(authority / f"{name}.pem"),
            "ssl.key.location": str(authority / f"{name}.key"),
        }


class HostsStage:
    """Three hosts with a broker each and, when protected, kquota; all of it goes when the block ends."""

    def __init__(self, plan: Plan, runtime: KafkaRuntime, steps: Steps, *, protected: bool) -> None:
        self.plan = plan
        self.protected = protected
        self.cluster: HostsCluster
        self.files: dict[int, BrokerFiles] = {}
        self._runtime = runtime
        self._steps = steps
        self._agents: dict[int, HostProcess] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            fleet = self._boot(stack)
            path = fleet.path / "stage"
            path.mkdir(mode=0o700)
            self.cluster = HostsCluster(fleet, path)
            settings = inventory_settings(self.plan, fleet["broker-1"].spec)
            inventory = write_inventory(fleet, path, settings=settings)
            self._play(inventory, SHARED / "prepare.yml", "Kafka on each host")
            if self.protected:
                self._play(inventory, REPOSITORY / "playbooks/rollout.yml", "playbooks/rollout.yml")
            with self._steps.step("the applications' permissions"):
                self._permit()
            self._find(fleet, stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        with self._steps.step("removing the hosts"):
            self._stack.close()

    def check_agents(self) -> None:
        """See that no agent has ended.

        Raises:
            AgentFailed: one has, though systemd may have started another.
        """
        for broker_id, agent in self._agents.items():
            if not agent.running():
                tail = journal(self.cluster.fleet[f"broker-{broker_id}"], _TAIL)
                raise AgentFailed(f"the agent of broker {broker_id} has ended:\n{tail}")

    def _boot(self, stack: ExitStack) -> Fleet:
        suite = own_suite()
        with self._steps.step(f"the hosts' root directory, Debian {suite}"):
            ensure_image(suite)
        specs = host_specs(self.plan, suite, self._runtime.jars)
        with self._steps.step(f"booting {len(specs)} hosts"):
            return stack.enter_context(Fleet.create(f"demo-{os.getpid()}", specs))

    def _play(self, inventory: Path, playbook: Path, what: str) -> None:
        # Ansible's own files, such as connections, go with the fleet, too. Its output is read here.
        of_ansible = {
            "ANSIBLE_HOME": str(self.cluster.path / "ansible"),
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.cluster.path / "ssh"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_NOCOWS": "1",
            "LC_ALL": "C.UTF-8",
        }
        environment = self.cluster.environment() | RESIDENT | of_ansible
        with self._steps.step(what) as step:
            play(inventory, playbook, extra_environment=environment, on_banner=teller(step))

    def _permit(self) -> None:
        """Let the applications write and read their topics: whom no ACL names may do nothing."""
        topics = [application.topic for application in self.plan.applications]
        wanted = [
            *(("TOPIC", topic, operation) for topic in topics for operation in ("WRITE", "READ")),
            ("GROUP", _CONSUMER_GROUP, "READ"),
        ]
        bindings = [
            AclBinding(kind, name, "LITERAL", _APPLICATION, "*", operation, "ALLOW")
            for kind, name, operation in wanted
        ]
        admin = admin_client(self.cluster.administrator_configuration())
        for created in admin.create_acls(bindings).values():
            created.result(timeout=_PATIENCE_SECONDS)

    def _find(self, fleet: Fleet, stack: ExitStack) -> None:
        """Find the processes, volumes and files that the play looks at."""
        brokers = []
        for broker_id in BROKER_IDS:
            host = fleet[f"broker-{broker_id}"]
            volumes = [host.volumes[path] for path in data_paths(host.spec)]
            brokers.append(
                HostBroker(
                    node_id=broker_id,
                    volumes=tuple(
                        LoopVolume(image=volume.image, mount_point=volume.mount_point) for volume in volumes
                    ),
                    log=self.cluster.path / f"{host.name}.log",
                    process=HostProcess(host, BROKER),
                )
            )
            if self.protected:
                self._agents[broker_id] = HostProcess(host, AGENT)
                self.files[broker_id] = BrokerFiles(
                    decision=host.inside("/run/kquota/decision.json"),
                    applied=host.inside("/run/kquota-broker/applied.json"),
                    clock=BootClock(host.inside("/proc/sys/kernel/random/boot_id")),
                )
            else:  # the effect of a full disk is read in the brokers' logs
                stack.callback(self._follow(host, brokers[-1].log).kill)
        self.cluster = HostsCluster(fleet, self.cluster.path, tuple(brokers))

    def _follow(self, host: Host, log: Path) -> ChildProcess:
        journal = ("journalctl", "--follow", "--lines=0", "--output=cat", f"--unit={BROKER}")
        return ChildProcess([*host.entry(), *journal], log_path=log, environment=self.cluster.environment())


def teller(step: Step) -> Callable[[str, str], None]:
    """The output of a play within a step: its parts for good, its tasks until the next."""

    def tell(kind: str, name: str) -> None:
        if kind == "PLAY":
            step.part(name)
        else:
            step.now(name)

    return tell
