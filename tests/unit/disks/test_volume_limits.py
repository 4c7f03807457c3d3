"""Which volume each path of ``limits.volumes`` is for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kquota.disks.observation import LimitsProblem
from kquota.disks.probe import LogDirLook
from kquota.disks.volume_limits import BoundLimits, bind_limits, bound_from_json, refuse_limits
from kquota.settings import SettingsError, load
from kquota.settings.model import LimitsSection
from tests.unit.disks.test_volumes import MOUNTS, UUID_1, UUID_2, look, resolved

HARD_1 = {"hard": {"type": "MinFreePercentage", "level": 1}}
HARD_2 = {"hard": {"type": "MinFreePercentage", "level": 2}}
BOTH = (look("/data/1/k", 11), look("/data/2/k", 12))


def bound(
    volumes: dict[str, Any],
    *looks: LogDirLook,
    log_dirs: tuple[LogDirLook, ...] = BOTH,
    before: dict[str, tuple[str, ...]] | None = None,
) -> BoundLimits:
    """The result for these paths; ``looks`` are those at paths that are no log dirs."""
    limits = LimitsSection.model_validate({"volumes": volumes})
    resolution = resolved(",".join(one.log_dir for one in log_dirs), *log_dirs)
    everything = {one.log_dir: one for one in (*log_dirs, *looks)}
    return bind_limits(limits, resolution, everything, MOUNTS, before or {}, 5.0)


@pytest.mark.parametrize("path", ["/data/1", "/data/1/k", "/data/1/elsewhere", "/bound"])
def test_any_path_on_a_volume_is_for_it(path: str) -> None:
    mount_id = 13 if path == "/bound" else 11
    found = bound({path: HARD_1}, look(path, mount_id))
    assert found.bound == {path: (UUID_1,)}
    assert [volume.limits_path for volume in found.observation.volumes] == [path, None]
    assert {volume.status for volume in found.observation.volumes} == {"ok"}
    assert (found.observation.warnings, found.observation.limits_problems) == ((), ())


@pytest.mark.parametrize(
    ("path", "at_path", "why"),
    [("/other", look("/other", 1), "it lies on /"), ("/other", LogDirLook("/other"), "")],
)
def test_a_path_on_no_volume_of_the_broker_is_a_problem_of_all_without_a_path(
    path: str, at_path: LogDirLook, why: str
) -> None:
    found = bound({"/data/1": HARD_1, path: HARD_2}, at_path)
    (problem,) = found.observation.limits_problems
    assert problem.path == path
    assert problem.wrong.startswith(f"is on no volume with a log dir of this broker: {why}")
    assert problem.allowed == "a path on the volume of /data/1/k, /data/2/k"
    assert found.observation.warnings == (str(problem),)
    named, unnamed = found.observation.volumes
    assert (named.status, unnamed.status, unnamed.reason) == ("ok", "failed", str(problem))
    assert found.bound == {"/data/1": (UUID_1,)}


def test_two_paths_of_one_volume_must_agree() -> None:
    at_paths = (look("/bound", 13), look("/data/1/k", 11))
    agreeing = bound({"/data/1": HARD_1, "/bound": HARD_1}, *at_paths)
    assert agreeing.observation.limits_problems == ()
    assert agreeing.observation.volumes[0].limits_path == "/data/1"
    found = bound({"/data/1": HARD_1, "/bound": HARD_2, "/data/1/k": HARD_1}, *at_paths)
    problem = LimitsProblem(
        "/bound",
        "has other limits than limits.volumes./data/1, which is for the same volume, /dev/sdb1",
        "one of the two, or the same limits",
    )
    assert found.observation.limits_problems == (problem,)
    assert found.observation.warnings == (str(problem),)
    assert [volume.status for volume in found.observation.volumes] == ["failed", "ok"]
    assert found.observation.volumes[0].reason == str(problem)


def test_each_contradiction_is_named() -> None:
    found = bound(
        {"/data/1": HARD_1, "/data/1/k": HARD_2, "/data/2": HARD_1, "/data/2/k": HARD_2},
        look("/data/1", 11),
        look("/data/2", 12),
    )
    assert [problem.path for problem in found.observation.limits_problems] == ["/data/1/k", "/data/2/k"]


def test_while_a_volume_is_lost_a_path_may_be_for_it() -> None:
    lost = LogDirLook("/data/2/k", failed_step="open", failed_errno=5, sampled_at_monotonic=None)
    found = bound({"/other": HARD_1}, look("/other", 1), log_dirs=(BOTH[0], lost))
    assert found.observation.limits_problems == ()
    assert len(found.observation.warnings) == 1
    assert [volume.status for volume in found.observation.volumes] == ["ok", "failed"]
    remembered = bound({"/data/1/x": HARD_1}, LogDirLook("/data/1/x"), before={"/data/1/x": (UUID_1, "gone")})
    assert remembered.bound == {"/data/1/x": (UUID_1,)}


def test_what_a_path_was_for_counts_only_where_it_can_not_be_looked_at() -> None:
    before = {"/data/2/x": (UUID_1,)}
    assert bound({"/data/2/x": HARD_1}, look("/data/2/x", 12), before=before).bound == {
        "/data/2/x": (UUID_2,)
    }
    assert bound({"/data/2/x": HARD_1}, LogDirLook("/data/2/x"), before=before).bound == before


def test_what_was_remembered_is_read_and_other_forms_are_left_out() -> None:
    assert bound_from_json({"/a": ["x", "y"], "/b": [], "/c": "x", "/d": ["x", 7], "/e": None}) == {
        "/a": ("x", "y"),
        "/b": (),
    }


def test_a_configuration_is_refused_with_every_problem(tmp_path: Any) -> None:
    file = tmp_path / "agent.yml"
    file.write_text(
        "broker: {server_properties: /etc/kafka/server.properties}\n"
        "kafka: {bootstrap.servers: 'localhost:9093'}\nlimits: {volumes: {/a: {}, /b: {}}}\n"
    )
    settings = load(file, {})
    refuse_limits(settings, [])
    problems = [LimitsProblem("/a", "is wrong", "this"), LimitsProblem("/b", "is worse", "that")]
    with pytest.raises(SettingsError) as refused:
        refuse_limits(settings, problems)
    for word in ("limits.volumes./a", "is wrong", "this", "limits.volumes./b", "is worse", "that", str(file)):
        assert word in str(refused.value)


def awaiting(volumes: dict[str, Any], log_dir: str) -> BoundLimits:
    """The result for these paths, with a log dir whose mount is missing; /data/2/k is a sound one."""
    lost = replace(look(log_dir, 1), formatted=False)
    sound = replace(look("/data/2/k", 12), formatted=True)
    at_paths = tuple(look(path, 1) for path in volumes if not path.startswith("/data/2"))
    return bound(volumes, *at_paths, log_dirs=(lost, sound))


@pytest.mark.parametrize("path", ["/data", "/data/7", "/data/7/k"])
def test_a_path_above_a_log_dir_that_waits_for_its_mount_is_for_its_volume(path: str) -> None:
    found = awaiting({path: HARD_1}, "/data/7/k")
    assert found.bound == {path: ("unknown@/data/7/k",)}
    assert [volume.limits_path for volume in found.observation.volumes] == [path, None]


def test_of_two_paths_above_the_nearest_one_is_for_the_volume() -> None:
    for paths in (["/data", "/data/7"], ["/data/7", "/data"]):
        found = awaiting(dict.fromkeys(paths, HARD_1), "/data/7/deep/k")
        assert found.bound == {"/data/7": ("unknown@/data/7/deep/k",)}


@pytest.mark.parametrize("path", ["/", "/other", "/data/70"])
def test_the_root_and_paths_elsewhere_are_for_no_volume_that_waits(path: str) -> None:
    assert awaiting({path: HARD_1}, "/data/7/k").bound == {}


def test_a_path_above_a_volume_that_was_found_is_not_for_it() -> None:
    assert awaiting({"/data": HARD_1, "/data/2": HARD_2}, "/data/7/k").bound == {
        "/data": ("unknown@/data/7/k",),
        "/data/2": (UUID_2,),
    }
