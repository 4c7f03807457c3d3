"""The hosts on a command line: `python -m testbed.hosts --help`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from testbed.hosts.commands import CommandFailed
from testbed.hosts.fleet import Fleet, FleetFailed
from testbed.hosts.host import HostFailed
from testbed.hosts.image import USER, ensure_image
from testbed.hosts.spec import HostSpec, VolumeSpec

app = typer.Typer(
    help="Throw-away Debian hosts with a systemd of their own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
FleetName = Annotated[str, typer.Argument(metavar="FLEET", help="Name of the fleet.")]
HostName = Annotated[str, typer.Argument(metavar="HOST", help="Name of the host.")]
FAULTS = {
    "detach": "detach",
    "attach": "attach",
    "shutdown": "shut_down",
    "error": "break_read_only",
    "read-only": "remount_read_only",
    "writable": "remount_writable",
}


def _volume(text: str) -> VolumeSpec:
    path, _, rest = text.partition("=")
    filesystem, _, size = rest.partition(":")
    return VolumeSpec.model_validate(
        {"path": path, "filesystem": filesystem or "ext4", "size_mebibytes": size or "128"}
    )


def describe(fleet: Fleet) -> dict[str, object]:
    """The data that a login needs, as JSON."""
    return {
        "fleet": fleet.name,
        "user": USER,
        "key": str(fleet.key),
        "hosts": {
            host.name: {"address": host.address, "suite": host.spec.suite, "running": host.pid is not None}
            for host in fleet.values()
        },
    }


@app.command()
def image(suites: Annotated[list[str], typer.Argument(help="bookworm, trixie")]) -> None:
    """Make the images that hosts boot from, and print where they are."""
    for suite in suites:
        print(ensure_image(suite))


@app.command()
def create(
    name: FleetName,
    host: Annotated[list[str] | None, typer.Option(help="NAME or NAME=SUITE; may be repeated.")] = None,
    suite: Annotated[str, typer.Option(help="Suite of hosts without one of their own.")] = "bookworm",
    volume: Annotated[
        list[str] | None, typer.Option(help="PATH=FILESYSTEM:MEBIBYTES on each host; may be repeated.")
    ] = None,
    spec: Annotated[Path | None, typer.Option(help="JSON list of hosts instead; - is stdin.")] = None,
    owner: Annotated[
        int, typer.Option(envvar="FLEET_OWNER_PID", help="The hosts go when this process ends; 0: never.")
    ] = 0,
) -> None:
    """Make and boot hosts; prints how to reach them."""
    if spec is not None:
        text = sys.stdin.read() if str(spec) == "-" else spec.read_text("utf-8")
        specs = TypeAdapter(list[HostSpec]).validate_json(text)
    else:
        volumes = [_volume(each) for each in volume or []]
        pairs = [each.partition("=") for each in host or ["host-1"]]
        specs = [
            HostSpec.model_validate({"name": first, "suite": own or suite, "volumes": volumes})
            for first, _, own in pairs
        ]
    fleet = Fleet.create(name, specs, owner_pid=owner, report=lambda line: print(line, file=sys.stderr))
    print(json.dumps(describe(fleet), indent=2))


@app.command()
def destroy(
    names: Annotated[list[str] | None, typer.Argument(metavar="FLEET", help="Names of fleets.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Each fleet on this machine.")] = False,
) -> None:
    """Remove hosts and all that was made for them; one that is gone is no error."""
    known = Fleet.names()
    for name in known if everything else names or []:
        if name in known:
            Fleet.open(name).destroy()


@app.command("list")
def list_fleets() -> None:
    """Print all fleets as JSON."""
    print(json.dumps([describe(Fleet.open(name)) for name in Fleet.names()], indent=2))


@app.command("exec", context_settings={"ignore_unknown_options": True})
def execute(name: FleetName, host: HostName, command: list[str]) -> None:
    """Run a command on a host as root."""
    entry = Fleet.open(name)[host].entry()
    os.execvp(entry[0], [*entry, *command])


@app.command()
def ssh(name: FleetName, host: HostName) -> None:
    """Log in to a host."""
    command = Fleet.open(name).ssh(host)
    os.execvp(command[0], command)


@app.command()
def fault(
    name: FleetName,
    host: HostName,
    path: Annotated[str, typer.Argument(help="Mount point of the volume on the host.")],
    what: Annotated[str, typer.Argument(help=", ".join(FAULTS))],
) -> None:
    """Let a disk fail, or repair it."""
    volumes = Fleet.open(name)[host].volumes
    if path not in volumes or what not in FAULTS:
        raise FleetFailed(f"volumes of {host}: {', '.join(volumes) or 'none'}; faults: {', '.join(FAULTS)}")
    getattr(volumes[path], FAULTS[what])()


@app.command()
def network(
    name: FleetName, host: HostName, what: Annotated[str, typer.Argument(help="cut or restore")]
) -> None:
    """Pull the network cable of a host, or put it in again."""
    Fleet.open(name)[host].plug_network(connected={"cut": False, "restore": True}[what])


if __name__ == "__main__":
    try:
        app()
    except (FleetFailed, HostFailed, CommandFailed, ValidationError) as failure:
        print(f"hosts: {failure}", file=sys.stderr)
        sys.exit(1)
