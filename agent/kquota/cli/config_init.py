"""``kquota config init``: an agent.yml for the broker on this host, from what is found there."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated

import typer
import yaml

from kquota.cli import exit_codes
from kquota.cli.access import access
from kquota.cli.configuration import DEFAULT_CONFIG, ConfigOption
from kquota.cli.output import fail
from kquota.disks.broker_process import RunningBroker, running_brokers
from kquota.disks.server_properties import (
    BrokerProperties,
    BrokerPropertiesError,
    broker_properties_of,
    node_id_of,
    raw_properties,
)
from kquota.formats.strict_json import printable
from kquota.host.atomic import replace_file

_MODE = 0o640
_LISTENER = re.compile(r"([^:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.ASCII)
_EXAMPLE = "/usr/share/doc/kquota/examples/agent.yml"
_TLS = Path("/etc/kquota/tls")
_FILES = {
    "ssl.ca.location": "the authority of the broker's certificate",
    "ssl.certificate.location": "the agent's certificate",
    "ssl.key.location": "its key",
}
_EVERY_INTERFACE = ("", "0.0.0.0", "::")
# The unit kquota-agent@NAME reads NAME.yml here. Of the others, a broker's directory below /run has the name.
_INSTANCE = re.compile(r"(?!(?:agent|broker)\Z|broker-)[a-z0-9][a-z0-9_.-]*", re.ASCII)
_FIRST_PORT = 9464


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of the broker that clients can reach: its name, protocol, and address."""

    name: str
    protocol: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """Return host:port, for bootstrap.servers."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def config_init(
    config: ConfigOption = DEFAULT_CONFIG,
    server_properties: Annotated[
        Path | None,
        typer.Option(
            "--server-properties",
            help="The broker's server.properties; by default the one that the running broker has.",
        ),
    ] = None,
    user: Annotated[str, typer.Option("--user", help="The agent's user.")] = "kquota",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write agent.yml for the broker on this host, from its process and its server.properties.

    Of several brokers each has an agent of its own, kquota-agent@NAME, with --config /etc/kquota/NAME.yml.
    The agent then observes, and holds no producer. Allows the agent's user to read server.properties and to
    list the log dirs, as kquota access does. Prints what it found, and the next step. Run it as root.
    """
    if os.path.lexists(config) and not force:
        fail(f"{config} exists: kquota config check checks it, and --force replaces it")
    if os.geteuid() != 0:
        fail(
            f"only root can write {config} and give the agent access: run kquota config init again as root",
            exit_codes.USAGE,
        )
    instance = instance_of(config)
    try:
        broker, node_id = _broker(server_properties)
        listener = listener_of(broker.raw, broker.path)
    except BrokerPropertiesError as error:
        fail(str(error), exit_codes.CONFIGURATION)
    access(broker.path, user)
    kafka = kafka_section(broker.raw, listener)
    document: dict[str, object] = {"broker": _broker_section(broker, node_id), "kafka": kafka}
    if instance is not None:
        document |= own_places(instance, ports_of_others(config))
    head = f"# Written by kquota config init. All keys, with their meaning: {_EXAMPLE}\n"
    try:
        replace_file(config, (head + yaml.safe_dump(document, sort_keys=False)).encode(), _MODE)
        os.chown(config, 0, pwd.getpwnam(user).pw_gid)
    except OSError as error:
        fail(f"{config}: can't be written: {error.strerror}")
    directories = ", ".join(printable(str(path)) for path in broker.directories)
    typer.echo(f"found broker {broker.node_id}, {printable(str(broker.path))}, directories {directories}")
    typer.echo(f"found listener {listener.name} ({listener.protocol}) at {listener.address}")
    typer.echo(f"wrote {config}: the agent observes, and holds no producer")
    missing = {key: file for key, file in kafka.items() if key in _FILES and not Path(file).exists()}
    for step in next_steps(config, instance, missing, user):
        typer.echo(f"next: {step}")


def listener_of(raw: Mapping[str, str], path: Path) -> Listener:
    """Return the listener for the agent: that of the brokers, or one that needs no credentials.

    Raises:
        BrokerPropertiesError: there is none that can be used without more than the host's files say.
    """
    controllers = {name.upper() for name in _entries(raw.get("controller.listener.names", ""))}
    advertised = {one.name: one for one in _listeners(raw, "advertised.listeners", path)}
    found = [
        advertised.get(one.name, one)
        for one in _listeners(raw, "listeners", path, default="PLAINTEXT://:9092")
        if one.name not in controllers
    ]
    if not found:
        raise BrokerPropertiesError(
            f"{path}: listeners has none for clients: kquota needs a node with the role of a broker"
        )
    name = raw.get("inter.broker.listener.name", raw.get("security.inter.broker.protocol", "PLAINTEXT"))
    chosen = min(
        (one for one in found if one.protocol in ("PLAINTEXT", "SSL")),
        key=lambda one: (one.name != name.strip().upper(), one.protocol != "PLAINTEXT"),
        default=None,
    )
    if chosen is None:
        names = ", ".join(f"{one.name} ({one.protocol})" for one in found)
        raise BrokerPropertiesError(
            f"{path}: clients need SASL at each listener, {names}, and no file of the broker names the"
            f" agent's credentials: copy {_EXAMPLE} and set sasl.mechanism, sasl.username and kafka_secrets"
        )
    return chosen


def kafka_section(raw: Mapping[str, str], listener: Listener) -> dict[str, str]:
    """Return the section kafka of agent.yml for a listener; with TLS, it names files of the agent."""
    kafka = {"bootstrap.servers": listener.address}
    if listener.protocol == "SSL":
        kafka |= {"security.protocol": "ssl", "ssl.ca.location": str(_TLS / "ca.pem")}
        key = f"listener.name.{listener.name.lower()}.ssl.client.auth"
        if raw.get(key, raw.get("ssl.client.auth", "none")).strip().lower() != "none":
            kafka["ssl.certificate.location"] = str(_TLS / "agent.pem")
            kafka["ssl.key.location"] = str(_TLS / "agent.key")
    return kafka


def next_steps(config: Path, instance: str | None, missing: Mapping[str, str], user: str) -> list[str]:
    """Return what to do next; ``missing`` are files of TLS that are not there, by librdkafka's property."""
    option = "" if config == DEFAULT_CONFIG else f" --config {config}"
    run = "systemctl start kquota-agent" + ("" if instance is None else f"@{instance}")
    if option and instance is None:  # no unit reads a file elsewhere
        run = f"kquota run{option}"
    start = f"{run}, then kquota status{option}"
    if not missing:
        return [start]
    files = ", ".join(f"{_FILES[key]} in {file}" for key, file in missing.items())
    return [
        f"this listener needs TLS: put, as PEM files that {user} can read, {files}",
        # As the agent's user: root can read every file.
        f"runuser -u {user} -- kquota config check{option}, then {start}",
    ]


def own_places(instance: str, ports: Collection[int]) -> dict[str, object]:
    """Return the keys in which agents on one host must differ; ``ports`` are those of the other agents."""
    port = next(port for port in count(_FIRST_PORT) if port not in ports)
    return {
        "decision_file": f"/run/kquota-{instance}/decision.json",
        "applied_file": f"/run/kquota-broker-{instance}/applied.json",
        "state_dir": f"/var/lib/kquota-{instance}",
        "metrics": {"listen": f"127.0.0.1:{port}"},
    }


def instance_of(config: Path) -> str | None:
    """Return the name of the unit's instance that reads this file; None for the host's only agent."""
    if config.absolute().parent != DEFAULT_CONFIG.parent or config.name == DEFAULT_CONFIG.name:
        return None
    if config.suffix != ".yml" or not _INSTANCE.fullmatch(config.stem):
        fail(
            f"{config}: allowed is {DEFAULT_CONFIG}, or NAME.yml there with a NAME of lower-case letters,"
            " digits, dots, underscores and hyphens, which is not broker and does not begin with broker-",
            exit_codes.USAGE,
        )
    return config.stem


def ports_of_others(config: Path) -> set[int]:
    """Return the ports of metrics of the other agents on this host, as far as their files can be read."""
    found = set[int]()
    for other in config.parent.glob("*.yml"):
        if other.name == config.name:
            continue
        try:
            written = yaml.safe_load(other.read_bytes())
            listen = str(written["metrics"]["listen"])
        except (OSError, yaml.YAMLError, TypeError, KeyError):
            listen = f":{_FIRST_PORT}"
        port = listen.rpartition(":")[2]
        if port.isdecimal():
            found.add(int(port))
    return found


def _broker(wanted: Path | None) -> tuple[BrokerProperties, int | None]:
    """Return the broker's properties, and its node id where only its command line has it."""
    running = running_brokers()
    if wanted is not None:
        path = wanted.absolute()
        running = [one for one in running if one.file == path] or [RunningBroker(path, {})]
    if not running:
        fail(
            "no running broker can be seen on this host: start Kafka, or name the file that it is started"
            " with, with --server-properties"
        )
    files = sorted({str(one.file) for one in running})
    if len(files) > 1:
        fail(
            f"{len(files)} brokers run on this host: name one with --server-properties, and a file of its own"
            f" with --config {DEFAULT_CONFIG.parent}/NAME.yml: {', '.join(map(printable, files))}"
        )
    file, overrides = running[0].file, running[0].overrides
    written = raw_properties(file)
    broker = broker_properties_of({**written, **overrides}, file)
    names_it = bool({"node.id", "broker.id"} & written.keys()) and node_id_of(written, file) == broker.node_id
    if broker_properties_of(written, file, broker.node_id).directories != broker.directories:
        raise BrokerPropertiesError(
            f"{file}: the broker has log.dirs or metadata.log.dir from its command line, which the agent"
            " can't watch: write them into the file"
        )
    if not broker.log_dirs:
        raise BrokerPropertiesError(
            f"{file}: process.roles is controller alone: kquota needs a node with the role of a broker"
        )
    return broker, None if names_it else broker.node_id


def _broker_section(broker: BrokerProperties, node_id: int | None) -> dict[str, object]:
    section: dict[str, object] = {"server_properties": str(broker.path)}
    if node_id is not None:
        section["node_id"] = node_id
    return section


def _entries(listed: str) -> list[str]:
    return [entry for entry in (each.strip() for each in listed.split(",")) if entry]


def _listeners(raw: Mapping[str, str], key: str, path: Path, default: str = "") -> list[Listener]:
    protocols = {}
    for entry in _entries(raw.get("listener.security.protocol.map", "")):
        name, _, protocol = entry.partition(":")
        protocols[name.strip().upper()] = protocol.strip().upper()
    found = []
    for entry in _entries(raw.get(key, default)):
        match = _LISTENER.fullmatch(entry)
        if match is None:
            raise BrokerPropertiesError(f"{path}: {key}: {entry!r}: allowed is NAME://host:port")
        name, host, port = match[1].upper(), match[2], int(match[3])
        protocol = protocols.get(name, name)
        if host in _EVERY_INTERFACE:
            # A certificate names the host, and no client takes it for localhost.
            host = socket.getfqdn() if protocol == "SSL" else "localhost"
        found.append(Listener(name, protocol, host, port))
    return found
