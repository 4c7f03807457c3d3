"""Whether the log dirs that are watched are those that the broker itself runs with.

The broker may have been started with another file, with an override on its command line or in another mount
namespace, or the file may have changed since: then the volumes that are watched are not the ones that fill.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kquota.disks.observation import Failure, Observation, VolumeObservation
from kquota.disks.probe import LogDirLook

Place = tuple[int, int]
"""Device and inode of a directory: they are the same in every mount namespace of a host."""


def with_broker_dirs(
    observation: Observation, looks: Mapping[str, LogDirLook], used: Mapping[str, Place | None]
) -> Observation:
    """Merge in the log dirs that the broker runs with: absolute path → place, None if unknown.

    Its plug-in reports them, or else they are what its process shows (`broker_process.py`).

    A volume fails where the same path leads the broker to another directory. Every volume fails where the
    broker uses a directory that is not watched. Without a place on either side the paths decide. A directory
    that is watched in addition to the broker's is no failure: the broker may be about to get it.
    """
    places = {os.path.normpath(path): _place(look) for path, look in looks.items()}
    watched = {place for place in places.values() if place is not None}
    elsewhere: dict[str, str] = {}
    unwatched = []
    for path, place in used.items():
        name = os.path.normpath(path)
        if place in watched or (name in places and None in (place, places[name])):
            continue
        if name in places:
            elsewhere[name] = (
                f"{path}: the broker has another directory at this path than the agent, on another mount or"
                " in another mount namespace, or was started before its file changed (restart the broker if"
                " its mount or its file was replaced)"
            )
        else:
            unwatched.append(path)
    sentence = (
        f"the broker uses {', '.join(unwatched)}, not among the log dirs that the agent watches:"
        " broker.server_properties must name the file that the broker was started with, without overrides of"
        " log.dirs; restart broker and agent if the file has changed"
    )
    return _with_failures(observation, elsewhere, sentence if unwatched else None)


def with_unformatted(observation: Observation, looks: Mapping[str, LogDirLook]) -> Observation:
    """Fail every volume of a broker that is up where it has formatted none of the directories watched.

    Kafka formats each directory before it registers: it uses others, as where it is in another mount
    namespace at the first start.
    """
    if not looks or any(look.formatted is not False for look in looks.values()):
        return observation
    sentence = (
        "the broker is up and no log dir that the agent watches has a meta.properties: the broker has other"
        " directories, on other mounts or in another mount namespace, or with another file than"
        " broker.server_properties"
    )
    return _with_failures(observation, {}, sentence)


def _with_failures(observation: Observation, elsewhere: Mapping[str, str], of_all: str | None) -> Observation:
    """Add failures of log dirs, by path, and one of all volumes."""
    return replace(
        observation,
        volumes=tuple(
            replace(
                volume,
                failures=(
                    *volume.failures,
                    *_failures(volume, elsewhere),
                    *([] if of_all is None else [Failure(None, of_all)]),
                ),
            )
            for volume in observation.volumes
        ),
    )


def _place(look: LogDirLook) -> Place | None:
    return (look.device, look.inode) if look.inode and look.failed_step is None else None


def _failures(volume: VolumeObservation, elsewhere: Mapping[str, str]) -> Iterable[Failure]:
    for log_dir in volume.log_dirs:
        if (reason := elsewhere.get(os.path.normpath(log_dir))) is not None:
            yield Failure(log_dir, reason)
