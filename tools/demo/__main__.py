"""``python -m tools.demo [--unprotected]``: a small disk fills on throw-away hosts (see ``make demo``)."""

from __future__ import annotations

import argparse
import sys

from confluent_kafka import KafkaException
from rich.console import Console

from kquota import __version__
from kquota.demo.command import perform, play_at
from kquota.demo.plan import Plan
from kquota.demo.runtime import ensure_kafka_runtime
from kquota.demo.volumes import require_loop_volumes
from tests.fleet.hosts.commands import CommandFailed
from tests.fleet.hosts.fleet import FleetFailed
from tests.fleet.hosts.host import HostFailed
from tests.fleet.rollout import ANSIBLE, REPOSITORY, PlayFailed
from tools.demo.stage import HostsStage, SuiteUnsupported
from tools.demo.steps import Steps


class NotSetUp(Exception):
    """Something that a make target makes is missing; the message names it."""


def require_what_make_makes(*, protected: bool) -> None:
    """See that Ansible and the packages are there, before minutes have passed.

    Raises:
        NotSetUp: something is missing.
    """
    if not ANSIBLE.exists():
        raise NotSetUp(f"{ANSIBLE} is missing: run `make deps-fleet`")
    packages = (f"kquota_{__version__}-1~deb*.deb", f"kquota-callback_{__version__}_all.deb")
    if protected and not all(any((REPOSITORY / "dist").glob(name)) for name in packages):
        raise NotSetUp("dist/ lacks the packages of this version: run `make packages`")


def show(console: Console, *, protected: bool) -> int:
    """Set it all up, play, and print the verdict; returns the exit code."""
    require_loop_volumes()
    require_what_make_makes(protected=protected)
    steps = Steps(console)
    with steps.step("Apache Kafka's jars") as step:
        runtime = ensure_kafka_runtime(report=step.part)
    with HostsStage(Plan(), runtime, steps, protected=protected) as stage:
        steps.end()
        look = f".venv/bin/python -m tests.fleet.hosts exec {stage.cluster.fleet.name} broker-1 --"
        console.print(f"to look at a host meanwhile: {look} systemctl status kafka", soft_wrap=True)
        title = f"kquota demo: Kafka {runtime.version}, three hosts, {'' if protected else 'un'}protected"
        return play_at(stage, title, console)


def main(arguments: list[str] | None = None) -> int:
    """Run; returns 0 promise kept, 1 not kept, 2 it can't run here, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("--unprotected", action="store_true", help="the same load without kquota")
    chosen = parser.parse_args(arguments)
    return perform(
        lambda console: show(console, protected=not chosen.unprotected),
        "make demo",
        unavailable=(NotSetUp, SuiteUnsupported, FleetFailed),
        failures=(CommandFailed, HostFailed, PlayFailed, KafkaException),
    )


if __name__ == "__main__":
    sys.exit(main())
