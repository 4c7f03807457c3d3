"""`kquota volumes`, and `kquota config check` of limits of volumes, with a real probe process."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kquota.disks.probe import LogDirLook, LogDirSampler
from tests.unit.cli.command import Host


def test_volumes_are_what_the_log_dirs_lie_on(host: Host) -> None:
    said = host.run("volumes", "--json")
    assert said.code == 0, said.err
    (volume,) = said.document
    found = os.statvfs(host.log_dir)
    assert volume["log_dirs"] == [str(host.log_dir)]
    assert volume["capacity_bytes"] == found.f_blocks * found.f_frsize
    assert volume["hard_bytes"] == volume["capacity_bytes"] * 95 // 100
    assert (volume["role"], volume["status"], volume["reason"]) == ("data", "ok", None)
    shown = host.run("volumes")
    assert shown.code == 0
    assert str(host.log_dir) in shown.out


def test_a_log_dir_is_shown_as_text_that_no_terminal_obeys(host: Host) -> None:
    name = f"{host.log_dir}/[red]{'x' * 80}:fire:[/b]"
    Path(f"{name}\x1b[2J").mkdir(parents=True)
    host.server_properties.write_text(f"node.id=1\nlog.dirs={name}\\u001b[2J\n", "ascii")
    said = host.run("volumes", columns=80)
    assert (said.code, said.err) == (0, "")
    assert "\x1b" not in said.out
    lines = said.out.splitlines()
    assert [line for line in lines if line.endswith(f": {name}\ufffd[2J")], "on one line, to be copied"
    checked = host.run("config", "check")
    assert checked.out.endswith(f" {name}\ufffd[2J\n")


def test_the_topics_on_a_volume_are_named_and_counted(host: Host) -> None:
    for partition in ("orders-0", "orders-1", "visits-0"):
        (host.log_dir / partition).mkdir()
    (volume,) = host.run("volumes", "--json").document
    assert volume["topics"] == ["orders", "visits"]
    header, line = host.run("volumes", columns=200).out.splitlines()[:2]
    assert line[: header.index("SIZE")].split()[-1] == "2"
    (host.log_dir / "-future").mkdir()
    (volume,) = host.run("volumes", "--json").document
    assert (volume["topics"], volume["status"]) == (None, "ok"), "not all are known"


def test_a_log_dir_that_the_user_may_not_list_holds_all_producers_with_the_scope_of_the_volume(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = LogDirSampler.latest

    def refused(sampler: LogDirSampler) -> dict[str, LogDirLook]:  # root may list everything
        return {name: replace(look, list_errno=errno.EACCES) for name, look in latest(sampler).items()}

    monkeypatch.setattr(LogDirSampler, "latest", refused)
    assert "all producers are held" not in " ".join(host.run("volumes").out.split())
    host.configure(scope="volume")
    assert "all producers are held while its volume" in " ".join(host.run("volumes").out.split())


def test_a_log_dir_that_is_not_there_fails(host: Host) -> None:
    host.log_dir.rmdir()
    said = host.run("volumes", "--json")
    assert said.code == 1
    (volume,) = said.document
    assert volume["status"] == "failed"
    assert "kafka" in volume["reason"]


def test_accepting_the_volumes_of_now_replaces_the_ones_before(host: Host) -> None:
    state = host.directory / "state" / "state.json"
    state.write_text(json.dumps({"schema_version": 1, "remembered_volumes": {"/x": {"y": 1}}}), "utf-8")
    assert host.run("volumes", "--accept").code == 0
    remembered = json.loads(state.read_text("utf-8"))["remembered_volumes"]
    assert list(remembered) == [str(host.log_dir)], "a start without it would ask the last report again"


def test_what_root_accepts_stays_readable_to_the_agent(host: Host) -> None:
    directory = host.directory / "state"
    if os.getuid() == 0:
        os.chown(directory, 65534, 65534)
    assert host.run("volumes", "--accept").code == 0
    assert (directory / "state.json").stat().st_uid == directory.stat().st_uid


@pytest.mark.accepts("A25")
def test_limits_of_a_path_on_no_volume_of_the_broker_are_refused(host: Host) -> None:
    hard = {"hard": {"type": "MinFreePercentage", "level": 7}}
    host.configure(limits={"volumes": {"/proc": hard}})
    said = host.run("config", "check")
    assert (said.code, said.out) == (78, "")
    assert "agent.yml line " in said.err
    assert "limits.volumes./proc is on no volume with a log dir of this broker" in said.err
    assert host.run("volumes").code == 1
    host.configure(limits={"volumes": {str(host.log_dir): hard, str(host.directory): {}}})
    said = host.run("config", "check")
    assert said.code == 78
    assert f"limits.volumes.{host.log_dir} has other limits than limits.volumes.{host.directory}" in said.err
    host.configure(limits={"volumes": {str(host.directory): hard}})
    assert host.run("config", "check").code == 0
    (volume,) = host.run("volumes", "--json").document
    assert volume["hard_bytes"] == volume["capacity_bytes"] * 93 // 100
    assert volume["limits_path"] == str(host.directory)
