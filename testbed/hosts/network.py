"""A network per fleet: a bridge with an address of this machine, a namespace per host, and no way out."""

from __future__ import annotations

import re

from testbed.hosts.commands import run

# The range for benchmarks (RFC 2544), which is routed nowhere. A fleet has one of its 512 networks.
_RANGE = "198.18.0.0/15"
NETWORKS = 512
_GUARD = ("unreachable", _RANGE, "metric", "4278198272")
_MTU = "1400"


def address(number: int, host: int) -> str:
    """Address of a host in fleet `number`; host 1 is this machine."""
    return f"198.{18 + number // 256}.{number % 256}.{host}"


def _bridge(number: int) -> str:
    return f"kqh{number}"


def _outer_end(number: int, host: int) -> str:
    return f"kqh{number}-{host}"


def namespace(number: int, host: int) -> str:
    """Name of a host's network namespace, below /run/netns."""
    return f"kqh{number}-{host}"


def namespaces(number: int) -> str:
    """Pattern of the names of all namespaces of a fleet."""
    return f"kqh{number}-*"


def bridges() -> set[int]:
    """Numbers of the fleets that have a bridge."""
    links = run("ip", "-o", "link", "show", "type", "bridge")
    return {int(number) for number in re.findall(r"^\d+: kqh(\d+):", links, re.MULTILINE)}


def make_bridge(number: int) -> None:
    """Make the fleet's bridge. Where it is gone, packets for its hosts go nowhere, either."""
    bridge = _bridge(number)
    run("ip", "route", "replace", *_GUARD)
    run("ip", "link", "add", bridge, "mtu", _MTU, "type", "bridge", "stp_state", "0", "forward_delay", "0")
    run("ip", "address", "add", f"{address(number, 1)}/24", "dev", bridge)
    run("ip", "link", "set", bridge, "up")


def connect(number: int, host: int) -> None:
    """Make the namespace of a host, with its end of a cable to the bridge, host0."""
    inside, outside = namespace(number, host), _outer_end(number, host)
    run("ip", "netns", "add", inside)
    run(
        "ip",
        "link",
        "add",
        outside,
        "mtu",
        _MTU,
        "type",
        "veth",
        "peer",
        "name",
        "host0",
        "mtu",
        _MTU,
        "netns",
        inside,
    )
    run("ip", "link", "set", outside, "master", _bridge(number), "up")
    run("ip", "-n", inside, "link", "set", "lo", "up")
    run("ip", "-n", inside, "address", "add", f"{address(number, host)}/24", "dev", "host0")
    run("ip", "-n", inside, "link", "set", "host0", "up")


def plug(number: int, host: int, *, connected: bool) -> None:
    """Pull the host's network cable, or put it in again."""
    run("ip", "link", "set", _outer_end(number, host), "up" if connected else "down")


def remove(number: int) -> None:
    """Remove the fleet's bridge, namespaces and cables, as far as they are there."""
    for line in run("ip", "netns", "list").splitlines():
        name = line.split(maxsplit=1)[0]
        if re.fullmatch(rf"{re.escape(_bridge(number))}-\d+", name):
            run("ip", "netns", "delete", name, check=False)
    # A namespace that some process still holds keeps its cable; the end here can go at once.
    for name in re.findall(r"^\d+: ([^:@]+)", run("ip", "-o", "link"), re.MULTILINE):
        if re.fullmatch(rf"{re.escape(_bridge(number))}(-\d+)?", name):
            run("ip", "link", "delete", name, check=False)


def remove_guard() -> None:
    """Remove the route that all fleets share; for the last one to go."""
    run("ip", "route", "delete", *_GUARD, check=False)
