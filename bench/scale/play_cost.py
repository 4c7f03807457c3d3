"""Run the plays on throw-away hosts, and take the time of their parts."""

from __future__ import annotations

import json
import os
import re
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from bench.scale.plays import AGAIN, PlayCost
from testbed.demo.hosts_stage import own_suite
from testbed.hosts.fleet import Fleet
from testbed.hosts.rollout import REPOSITORY, SHARED, play, write_inventory
from testbed.hosts.spec import HostSpec, VolumeSpec
from testbed.loopback.runtime import KafkaRuntime

PLAYS = REPOSITORY / "playbooks"
PARALLEL = Path(__file__).with_name("parallel.yml")
_RESTARTS = "Change the nodes that need a restart"
_PATHS = ("/data/1", "/data/2", "/data/metadata")
_VOLUMES = tuple(VolumeSpec(path=path, size_mebibytes=128) for path in _PATHS)
_RECAP = re.compile(r"^(\S+) +: ok=(\d+) .*skipped=(\d+)", re.M)


def measure_rollout(runtime: KafkaRuntime, hosts: int) -> list[PlayCost]:
    """The plays on hosts with a broker each, as an operator runs them one after the other."""
    with _fleet(hosts, _VOLUMES, {"/opt/kafka/libs": runtime.jars}, {}) as inventory:
        play(inventory, SHARED / "prepare.yml")
        runs: tuple[tuple[str, str, dict[str, object]], ...] = (
            ("rollout", "rollout", {}),
            (AGAIN, "rollout", {}),
            ("set_mode, to observe", "set_mode", {"kquota_mode": "observe"}),
            ("rollback", "rollback", {}),
        )
        return [_run(name, inventory, PLAYS / f"{file}.yml", given, hosts) for name, file, given in runs]


def measure_parallel(hosts: int) -> list[PlayCost]:
    """The parts that change all hosts at the same time, on hosts without Kafka; then the same again."""
    settings = {
        "kquota_agent_preflight_log_dirs_on_root": True,
        "kquota_agent_preflight_connections": False,
        "kquota_agent_service_enabled": False,
        "kquota_agent_service_state": "stopped",
        "kquota_topic_acls": False,
    }
    with _fleet(hosts, (), {}, settings) as inventory:
        names = ("preflight, agents and plug-in's files", "preflight, agents and plug-in's files, again")
        # There is no authority of brokers.
        given: dict[str, object] = {"kquota_tls_trusted_files": []}
        return [_run(name, inventory, PARALLEL, given, hosts, kafka=False) for name in names]


@contextmanager
def _fleet(
    hosts: int, volumes: tuple[VolumeSpec, ...], shows: dict[str, Path], settings: Mapping[str, object]
) -> Iterator[Path]:
    suite = own_suite()
    specs = [
        HostSpec.model_validate({"name": f"broker-{i}", "suite": suite, "volumes": volumes, "shows": shows})
        for i in range(1, hosts + 1)
    ]
    with (
        Fleet.create(f"plays-{os.getpid()}", specs) as fleet,
        TemporaryDirectory(dir=fleet.path) as folder,
    ):
        yield write_inventory(fleet, Path(folder), settings=settings)


def _run(
    name: str, inventory: Path, playbook: Path, given: Mapping[str, object], hosts: int, *, kafka: bool = True
) -> PlayCost:
    begins: list[tuple[float, str]] = []

    def on_banner(kind: str, banner: str) -> None:
        if kind == "PLAY":
            begins.append((time.monotonic(), banner))

    started, used = time.monotonic(), _children_core_seconds()
    said = play(inventory, playbook, on_banner=on_banner, options=("--extra-vars", json.dumps(given)))
    ended, used = time.monotonic(), _children_core_seconds() - used
    ends = [at for at, _ in begins[1:]] + [ended]
    recap = [(int(ok) + int(skipped)) for _, ok, skipped in _RECAP.findall(said.rsplit("PLAY RECAP", 1)[1])]
    return PlayCost(
        play=name,
        hosts=hosts,
        kafka=kafka,
        tasks=fmean(recap),
        seconds=ended - started,
        control_core_seconds=used,
        restarts=said.count("TASK [Restart the node]"),
        # Each batch of the roll begins with the name of its play.
        restart_seconds=sum(
            end - at for (at, banner), end in zip(begins, ends, strict=True) if banner == _RESTARTS
        ),
    )


def _children_core_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
