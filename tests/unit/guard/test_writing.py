"""The decision file, when it can't be written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.disks.observation import Failure
from kquota.formats.records import TopicKind
from kquota.guard.cycle import START_PATIENCE_SECONDS
from tests.unit.guard.cycles import CLUSTER, NEWS, Bench, arrival, order, state, volume
from tests.unit.wording import say


@pytest.mark.accepts("F19")
def test_a_write_that_fails_is_tried_again_in_every_cycle() -> None:
    bench = Bench()
    bench.settle()
    bench.ports.volumes = (volume(5),)
    bench.ports.write_error = "no space left"
    assert [bench.run().write_error for _ in range(3)] == ["no space left"] * 3
    assert bench.ports.written[-1]["state"] == "OPEN", "the old one stands"
    bench.ports.write_error = None
    assert bench.run().written
    assert bench.ports.written[-1]["state"] == "PAUSE"


@pytest.mark.accepts("F19")
def test_after_a_write_that_failed_nobody_knows_what_the_file_says() -> None:
    bench = Bench()
    bench.settle()
    hold = order(3600, Action="pause")
    assert bench.run(arrival("hold", hold)).written
    bench.ports.write_error = (
        "Input/output error"  # such as of the directory's fsync: the new file is in place
    )
    assert state(bench.run(arrival("hold", None))) == "OPEN"
    bench.ports.write_error = None
    held = bench.run(arrival("hold", hold))
    assert (state(held), held.written) == ("PAUSE", True), "although it is what was written well before"


def test_the_decision_names_the_own_log_dirs_and_when_their_state_changes() -> None:
    bench = Bench()
    bench.settle()
    (entry,) = bench.ports.written[-1]["own_log_dirs"]
    assert (entry["soft_available_bytes"], entry["hard_available_bytes"]) == (20, 10)
    bench.ports.volumes = (volume(50), volume(50, "/dev/sdb1", failures=(Failure(None, "it is gone"),)))
    bench.run(after=6)
    assert "own_log_dirs" not in bench.ports.written[-1]


def test_nothing_is_written_for_a_cluster_nobody_knows() -> None:
    bench = Bench()
    bench.news, bench.behind = replace(NEWS, cluster_id=None, active_brokers=None), {TopicKind.USAGE}
    report = bench.run(after=START_PATIENCE_SECONDS)
    assert report.decision is not None
    assert report.write_error == say("decision-without-a-cluster")
    granted = Bench(granted_for=CLUSTER)
    granted.news, granted.behind = bench.news, bench.behind
    assert granted.run(after=START_PATIENCE_SECONDS).written
    assert granted.ports.written[-1]["cluster_id"] == CLUSTER
