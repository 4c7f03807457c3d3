"""Disks at their edges: space that oscillates at a limit, none for the decision, a disk that hangs."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.host.forgetful_disk import ForgetfulDisk
from tests.integration.observe.conftest import HangingDisk
from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually

_SWINGS = 4


@pytest.mark.long
@pytest.mark.accepts("F29", "A30")
def test_space_that_oscillates_at_the_hard_limit_makes_one_pause(fleet: Fleet) -> None:
    fleet.fill(3, headroom=-0.03)
    fleet.await_enforced("PAUSE")
    marks = fleet.marks()
    for _ in range(_SWINGS):
        for headroom, cause in ((0.05, "latched"), (-0.03, "hard")):
            fleet.fill(3, headroom)
            eventually(
                lambda cause=cause: all(
                    agent.decision["reasons"][0]["cause"] == cause for agent in fleet.of()
                ),
                f"every broker has seen the swing: {cause}",
            )
    fleet.fill(3, headroom=0.3)
    fleet.await_enforced("THROTTLE")
    for broker_id, agent in fleet.agents.items():
        eventually(lambda: agent.told("THROTTLE to", since=marks[broker_id]), "it is logged")  # noqa: B023
        told = agent.states_told(marks[broker_id])
        changes = sum(now != before for before, now in zip(["PAUSE", *told], told, strict=False))
        assert changes == 1, f"{agent}: {told}"


@pytest.fixture
def small_run(fleet: Fleet, tmp_path: Path) -> Iterator[Path]:
    """A small file system, over the directory of broker 2's decision, that holds the decision."""
    target = fleet.agents[2].decision_path.parent
    options = "size=64k,mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path)], check=True)
    try:
        (tmp_path / "decision.json").write_bytes(fleet.agents[2].decision_path.read_bytes())
        subprocess.run(["mount", "--bind", str(tmp_path), str(target)], check=True)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    try:
        yield target
    finally:
        # Agent or broker may just have a file open there.
        subprocess.run(["umount", "--lazy", str(target)], check=True)


@pytest.mark.accepts("F19")
def test_without_space_for_the_decision_the_old_one_stays_and_its_lease_ends(
    fleet: Fleet, small_run: Path
) -> None:
    agent = fleet.agents[2]
    agent.reload(lease_seconds=8)
    sequence = agent.decision["sequence"]
    eventually(lambda: agent.applied["sequence"] > sequence, "the plug-in has heard of the shorter lease")
    marks = fleet.marks()
    with (small_run / "ballast").open("wb", buffering=0) as ballast:
        with pytest.raises(OSError, match="No space left on device"):
            os.posix_fallocate(ballast.fileno(), 0, 1 << 20)
        for _ in range(16):  # a page each, until there is none
            with contextlib.suppress(OSError):
                ballast.write(bytes(4096))
    eventually(lambda: agent.metric("kquota_decision_write_errors_total"), "a metric counts it")
    [(level, sentence)] = eventually(lambda: agent.told("decision.json", since=marks[2]), "it is logged")
    assert level == "WARNING"
    assert "No space left on device" in sentence
    last, begun = agent.decision, time.monotonic()
    lost = eventually(lambda: agent.applied["lost"], "the lease has run out")
    print(f"lost {time.monotonic() - begun:.1f} s after the first failure: {lost}")
    eventually(lambda: agent.applied["state"] == "PAUSE", "the broker falls back")
    assert agent.decision == last, "the old file is whole"
    assert set(agent.states_told(marks[2])) <= {"OPEN"}, "the agent itself goes on deciding"

    (small_run / "ballast").unlink()
    eventually(lambda: agent.applied["lost"] is None and agent.applied["state"] == "OPEN", "heard again")
    eventually(lambda: agent.told("over: ", since=marks[2]), "the end is logged, too")


@pytest.fixture
def hanging(fleet: Fleet, tmp_path: Path) -> Iterator[HangingDisk]:
    """A disk that can be made to hang; to the agent of broker 2 it is one more with a log dir on it."""
    agent, disk = fleet.agents[2], HangingDisk(tmp_path / "disk")
    try:
        text = agent.layout.server_properties.read_text("utf-8")
        properties, count = re.subn(r"(?m)^log\.dirs=.*$", rf"\g<0>,{disk.mount_point}", text)
        assert count == 1
        (tmp_path / "server.properties").write_text(properties, "utf-8")
        agent.stop()
        mark = agent.journal_mark()
        agent.write_config(broker={"server_properties": str(tmp_path / "server.properties")})
        agent.start()
        eventually(lambda: agent.told("OPEN: ", since=mark), "it has decided")
        yield disk
    finally:
        disk.take_down()
        agent.stop()


@pytest.mark.accepts("F4", "A28")
def test_an_agent_goes_on_beside_a_disk_that_hangs_and_says_which(fleet: Fleet, hanging: HangingDisk) -> None:
    agent, marks = fleet.agents[2], fleet.marks()
    hanging.hang()
    fleet.await_enforced("PAUSE")
    for other in fleet.of():
        assert other.decision["undetermined"] == [{"broker_id": 2, "cause": "failed"}]
    sentence = f"{hanging.mount_point}: no answer from the file system"
    told = eventually(lambda: agent.told(sentence, since=marks[2]), "it is logged")
    assert {level for level, _ in told} == {"WARNING"}
    sequence, pets = agent.decision["sequence"], len(agent.notifications.heard)
    reported = fleet.usage_of(2)[-1][1]
    statuses = [volume.get("Status", "ok") for volume in reported["Volumes"]]
    assert sorted(set(statuses)) == ["failed", "ok"], "its neighbours are well"
    assert statuses.count("failed") == 1
    eventually(lambda: agent.decision["sequence"] > sequence + 2, "the lease is renewed")
    eventually(lambda: fleet.usage_of(2)[-1][1]["Sequence"] > reported["Sequence"] + 1, "it reports on")
    eventually(
        lambda: any(message.get("WATCHDOG") == "1" for message in agent.notifications.heard[pets:]),
        "the watchdog is petted",
    )
    assert agent.applied["lost"] is None


@pytest.mark.long
@pytest.mark.accepts("F42")
def test_a_disk_that_is_slow_makes_one_pause_or_none_and_its_figures_count(
    fleet: Fleet, hanging: HangingDisk
) -> None:
    marks, hang_seconds = fleet.marks(), fleet.agents[2].settings["hang_seconds"]
    hanging.slow(0.4 * hang_seconds)
    reported = len(fleet.usage_of(2))
    while len(fleet.usage_of(2)) < reported + 4:
        assert all(agent.state == "OPEN" and agent.applied["lost"] is None for agent in fleet.of())
    hanging.leave_free(50)  # of 1,000 blocks: beyond the hard limit
    fleet.await_enforced("PAUSE")
    assert [reason["cause"] for reason in fleet.agents[1].decision["reasons"]] == ["hard"]
    hanging.leave_free(600)
    fleet.await_enforced("OPEN")

    hanging.slow(1.7 * hang_seconds)  # each answer comes, and too late
    fleet.await_enforced("PAUSE")
    until = time.monotonic() + 4 * hang_seconds
    while time.monotonic() < until:
        assert [agent.state for agent in fleet.of()] == ["PAUSE"] * 3, "it is not well from answer to answer"
        time.sleep(0.1)
    hanging.slow(0)
    fleet.await_enforced("OPEN")
    for broker_id, agent in fleet.agents.items():
        agent.await_passed("PAUSE", "OPEN", "PAUSE", "OPEN", since=marks[broker_id])


@pytest.mark.long
@pytest.mark.accepts("F43", "F17")
def test_errors_of_one_log_dir_make_its_broker_undetermined_until_they_end(
    fleet: Fleet, hanging: HangingDisk
) -> None:
    marks = fleet.marks()
    hanging.fail("entries")
    fleet.await_enforced("PAUSE")
    for agent in fleet.of():
        assert agent.decision["undetermined"] == [{"broker_id": 2, "cause": "failed"}]
    eventually(lambda: fleet.agents[2].told("Input/output error", since=marks[2]), "the journal names it")
    statuses = [volume.get("Status", "ok") for volume in fleet.usage_of(2)[-1][1]["Volumes"]]
    assert statuses.count("failed") == 1, "its neighbours are well"
    hanging.fail("nothing")
    fleet.await_enforced("OPEN")
    for broker_id, agent in fleet.agents.items():
        agent.await_passed("PAUSE", "OPEN", since=marks[broker_id])


@pytest.mark.long
@pytest.mark.accepts("F44")
def test_an_agent_whose_power_is_cut_comes_back_as_strict_as_it_was(fleet: Fleet, tmp_path: Path) -> None:
    """Its state is on a disk that forgets what was not synced; a full disk stays in force throughout."""
    agent, disk = fleet.agents[2], ForgetfulDisk(tmp_path / "state")
    try:
        agent.stop()
        agent.write_config(state_dir=str(disk.path))
        agent.start()
        eventually((disk.path / "state.json").exists, "it has saved its state")
        fleet.await_enforced("OPEN")
        fleet.fill(2, headroom=-0.1)
        fleet.await_enforced("PAUSE")
        for seed in range(3):
            mark = agent.journal_mark()
            agent.kill()
            disk.cut_power(seed)
            agent.start()
            eventually(lambda mark=mark: agent.told("PAUSE: ", since=mark), "it has decided again")
            assert set(agent.states_told(mark)) == {"PAUSE"}
            assert agent.decision["mode"] == "enforce"
            assert agent.told("is broken", since=mark) == []
            fleet.await_enforced("PAUSE")
        fleet.clear()
        fleet.await_enforced("OPEN")
    finally:
        agent.stop()
        disk.take_down()
