"""Log dirs that share a volume count once; each volume has a vote of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from host_state import applied, decision, run, wait_for

VOLUMES = {
    "/home/kafka": ("data", {"/home/kafka/a", "/home/kafka/b"}),
    "/srv/kafka": ("data", {"/srv/kafka/logs"}),
    "/data/metadata": ("metadata", {"/data/metadata/kafka"}),
}


def volumes(host: Any) -> dict[str, dict[str, Any]]:
    """Return the volumes that the host reports, by mount point."""
    return {each["mount_point"]: each for each in json.loads(run(host, "kquota volumes --json"))}


@pytest.mark.accepts("A28")
def test_the_host_knows_each_volume_once_with_its_log_dirs(host: Any):
    seen = {path: (each["role"], set(each["log_dirs"])) for path, each in volumes(host).items()}
    assert seen == VOLUMES
    assert {each["status"] for each in volumes(host).values()} == {"ok"}


@pytest.mark.accepts("A28")
def test_the_cluster_knows_it_too(host: Any):
    (broker,) = json.loads(run(host, "kquota status --json"))["brokers"]
    seen = [(each["role"], set(each["log_dirs"])) for each in broker["volumes"]]
    assert sorted(seen, key=str) == sorted(VOLUMES.values(), key=str)
    capacity = int(run(host, "df --block-size=1 --output=size /home/kafka").split()[1])
    assert [each["capacity_bytes"] for each in broker["volumes"] if len(each["log_dirs"]) == 2] == [capacity]


@pytest.mark.accepts("A28")
@pytest.mark.parametrize("path", ["/home/kafka", "/srv/kafka"])
def test_a_volume_that_fills_is_named_once_and_pauses(host: Any, path: str):
    name = volumes(host)[path]["volume"]
    available = int(run(host, f"df --block-size=1 --output=avail {path}").split()[1])
    run(host, f"fallocate --length {available - 4 * 2**20} {path}/ballast")
    try:
        wait_for(lambda: applied(host), lambda found: found["state"] == "PAUSE")
        found = wait_for(lambda: decision(host), lambda seen: len(seen["reasons"]) > 0)
        assert [reason["volume"] for reason in found["reasons"]] == [name]
    finally:
        run(host, f"rm {path}/ballast")
    wait_for(lambda: applied(host), lambda found: found["state"] == "OPEN")
