"""The log dirs in the agent's own last report, for the time when the state file is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kquota.core.usage import Volume
from kquota.observe.identity import VolumeIdentity
from kquota.observe.volumes import UNSEEN, Figures


@dataclass(frozen=True, slots=True)
class Recorded:
    """The volume of each log dir, and the last figures by volume id."""

    identities: Mapping[str, VolumeIdentity]
    figures: Mapping[str, Figures]


def recorded_volumes(volumes: Iterable[Volume]) -> Recorded:
    """Read the volumes of a usage record; those that its agent never saw itself are skipped."""
    identities: dict[str, VolumeIdentity] = {}
    figures: dict[str, Figures] = {}
    for volume in volumes:
        volume_id, mount_point = volume.volume_id, volume.mount_point
        if volume_id is None or mount_point is None or volume_id.startswith(UNSEEN):
            continue
        identity = VolumeIdentity(volume_id, volume.name, mount_point, "", volume.name, None)
        identities.update(dict.fromkeys(volume.log_dirs, identity))
        if volume.capacity_bytes > 0:
            figures[volume_id] = Figures(volume.capacity_bytes, volume.consumed_bytes, None)
    return Recorded(identities, figures)
