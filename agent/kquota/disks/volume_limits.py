"""Which volume each path of ``limits.volumes`` is for.

Pure: observations come in as arguments. A volume that is not mounted at the moment keeps its limits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from kquota.disks.mountinfo import Mount, MountTable
from kquota.disks.observation import Failure, LimitsProblem, Observation, VolumeObservation
from kquota.disks.probe import LogDirLook
from kquota.disks.volumes import Resolution, judge_look
from kquota.settings.model import LimitsSection, Settings
from kquota.settings.problems import SettingsError

Bound = Mapping[str, tuple[str, ...]]
"""The ids of the volumes that each path of ``limits.volumes`` is for."""


@dataclass(frozen=True, slots=True)
class BoundLimits:
    """An observation whose volumes name their path of ``limits.volumes``, and what to remember of that."""

    observation: Observation
    bound: Bound


def bind_limits(
    limits: LimitsSection,
    resolution: Resolution,
    looks: Mapping[str, LogDirLook],
    mounts: MountTable,
    bound: Bound,
    hang_seconds: float,
) -> BoundLimits:
    """Find the volume that each path of ``limits.volumes`` lies on.

    ``looks`` has the paths, too; ``bound`` is the earlier result. A path of no volume is a
    problem, and so are two paths of one volume with different limits. The volumes that a problem could be
    about fail: an agent that runs on must not judge them by weaker limits. While a volume is lost, a path
    that is for no volume is only a warning: it may be for the lost one, which fails anyway.
    """
    volumes = resolution.observation.volumes
    lost = {volume.volume_id for volume in volumes} - set(resolution.by_device.values())
    now_bound: dict[str, tuple[str, ...]] = {}
    unbound: list[LimitsProblem] = []
    for path in limits.volumes:
        place = judge_look(looks.get(path) or LogDirLook(path), mounts, hang_seconds)
        if found := _volumes_of(path, place, limits, resolution, lost, bound.get(path, ())):
            now_bound[path] = found
        else:
            unbound.append(_unbound(path, place, volumes))
    contradictions: list[LimitsProblem] = []
    judged = []
    for volume in volumes:
        paths = [path for path, ids in now_bound.items() if volume.volume_id in ids]
        contradicting = _contradictions(volume, paths, limits)
        contradictions += contradicting
        # without a path it may be the one that another path is meant for
        reasons = contradicting if paths or lost else unbound
        failures = (*volume.failures, *(Failure(None, str(reason)) for reason in reasons))
        judged.append(replace(volume, limits_path=paths[0] if paths else None, failures=failures))
    warnings = (*resolution.observation.warnings, *map(str, unbound), *map(str, contradictions))
    problems = (*(() if lost else unbound), *contradictions)
    return BoundLimits(Observation(tuple(judged), warnings, problems), now_bound)


def refuse_limits(settings: Settings, problems: Sequence[LimitsProblem]) -> None:
    """Refuse a configuration whose ``limits.volumes`` can't be used on this host.

    Raises:
        SettingsError: with every problem, in the form of any other of a configuration.
    """
    if problems:
        raise SettingsError(
            settings.problem(("limits", "volumes", one.path), one.wrong, one.allowed) for one in problems
        )


def bound_from_json(value: Mapping[str, object]) -> Bound:
    """Read the remembered form of ``bound``; entries of another form are left out."""
    return {
        path: tuple(ids)
        for path, ids in value.items()
        if isinstance(ids, list) and all(isinstance(one, str) for one in ids)
    }


def _volumes_of(
    path: str,
    place: Mount | str,
    limits: LimitsSection,
    resolution: Resolution,
    lost: Iterable[str],
    before: Sequence[str],
) -> tuple[str, ...]:
    """Return the ids of the volumes that a path is for, the surest answer first."""
    volumes = resolution.observation.volumes
    known = [volume.volume_id for volume in volumes if volume.volume_id in before]
    device = place.device if isinstance(place, Mount) else None
    looked = resolution.by_device.get(device) if device is not None else None
    return tuple(
        [volume.volume_id for volume in volumes if path in (volume.mount_point, *volume.log_dirs)]
        or [volume.volume_id for volume in volumes if _awaits(volume, limits.volumes) == path]
        # where its mount is gone the path lies elsewhere for the time being
        or [volume_id for volume_id in known if volume_id in lost]
        or ([] if looked is None else [looked])
        or known
    )


def _awaits(volume: VolumeObservation, paths: Container[str]) -> str | None:
    """Return the path that a log dir that was never found waits for: the nearest one above it."""
    if not volume.is_unknown:
        return None
    above = [str(parent) for parent in PurePosixPath(volume.mount_point).parents if parent.name]
    return next((path for path in above if path in paths), None)


def _unbound(path: str, place: Mount | str, volumes: Iterable[VolumeObservation]) -> LimitsProblem:
    why = place if isinstance(place, str) else f"it lies on {place.mount_point}"
    known = ", ".join(log_dir for volume in volumes for log_dir in volume.log_dirs)
    wrong = f"is on no volume with a log dir of this broker: {why}"
    return LimitsProblem(path, wrong, f"a path on the volume of {known}")


def _contradictions(
    volume: VolumeObservation, paths: Sequence[str], limits: LimitsSection
) -> list[LimitsProblem]:
    return [
        LimitsProblem(
            path,
            f"has other limits than limits.volumes.{paths[0]}, which is for the same volume, {volume.name}",
            "one of the two, or the same limits",
        )
        for path in paths[1:]
        if limits.pair(path) != limits.pair(paths[0])
    ]
