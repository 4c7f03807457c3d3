"""The volumes of one broker, watched: sampler, mount table and memory together, and how fast they fill."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kquota.disks.band import Band
from kquota.disks.broker_dirs import Place
from kquota.disks.broker_process import BrokerProcess, LockFile
from kquota.disks.identity import VolumeIdentity, udev_uuids
from kquota.disks.mountinfo import MountTable, MountTableReader
from kquota.disks.observation import Observation
from kquota.disks.probe import LogDirLook, LogDirSampler
from kquota.disks.server_properties import BrokerProperties
from kquota.disks.volume_limits import Bound, bind_limits
from kquota.disks.volumes import UNSEEN, resolve
from kquota.policy.decision import Scope
from kquota.policy.volume import Volume
from kquota.settings.model import LimitsSection


class VolumeWatch:
    """Observes the volumes behind a broker's directories, without ever waiting for a disk.

    ``remembered`` (log dir → volume) and ``bound`` (path of ``limits.volumes`` → ids of volumes) are what an
    earlier run found; persist the properties of these names when they change. A log dir that is not
    remembered may be on the wrong mount, until `recall` compares it with what this broker last reported.
    Not for use by several threads.
    """

    def __init__(
        self,
        properties: BrokerProperties,
        *,
        limits: LimitsSection | None = None,
        remembered: Mapping[str, VolumeIdentity] | None = None,
        bound: Bound | None = None,
        interval_seconds: float = 0.2,
        hang_seconds: float = 5.0,
        scope: Scope = Scope.CLUSTER,
    ) -> None:
        self.properties = properties
        self._hang_seconds = hang_seconds
        self._scope = scope
        log_dirs = [str(path) for path in properties.directories]
        self._remembered = {name: one for name, one in (remembered or {}).items() if name in log_dirs}
        self._limits = limits or LimitsSection()
        self._bound = {path: ids for path, ids in (bound or {}).items() if path in self._limits.volumes}
        self._unproven = set(log_dirs) - self._remembered.keys()
        self._accepts = False
        self._last_known: Mapping[str, LogDirLook] = {}
        self._uuids: Mapping[str, str] = {}
        self._seen_changes = 0
        self._mounts = MountTableReader()
        self._table = MountTable(())
        self._looks: Mapping[str, LogDirLook] = {}
        looked_at = list(dict.fromkeys([*log_dirs, *self._limits.volumes]))
        self.sampler = LogDirSampler(looked_at, interval_seconds=interval_seconds, hang_seconds=hang_seconds)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def remembered(self) -> Mapping[str, VolumeIdentity]:
        """The volume of each log dir, to be handed to the next run; none that is yet to be recalled."""
        return {name: one for name, one in self._remembered.items() if name not in self._unproven}

    @property
    def bound(self) -> Bound:
        """The volumes that each path of ``limits.volumes`` was last found to be for."""
        return dict(self._bound)

    def start(self) -> None:
        """Start sampling. Raises OSError where no process can be started."""
        self.sampler.start()

    def wait_for_samples(self, timeout_seconds: float) -> bool:
        """Wait until every directory has answered, also with an error; return whether all have in time."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            looks = self.sampler.latest().values()
            if all(look.failed_step or look.sampled_at_monotonic is not None for look in looks):
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)

    def wait_for_topics(self, timeout_seconds: float) -> None:
        """Have the topics of every log dir named, and wait until all are known or the time is over."""
        deadline = time.monotonic() + timeout_seconds
        log_dirs = frozenset(str(path) for path in self.properties.directories)
        while time.monotonic() < deadline:
            looks = self.sampler.latest()
            if all(looks[log_dir].topics is not None for log_dir in log_dirs):
                return
            self.sampler.wake_at({}, log_dirs)
            time.sleep(0.01)

    def observe(self) -> Observation:
        """Return the present knowledge; takes well under a millisecond, whatever the disks do."""
        looks = self._looks = self.sampler.latest()
        wanted = [look.mount_id for look in looks.values() if look.mount_id and look.failed_step is None]
        earlier = self._table
        mounts = self._table = self._mounts.current(wanted_ids=wanted)
        if self._mounts.changes != self._seen_changes:
            self._seen_changes = self._mounts.changes
            self._uuids = udev_uuids(mounts.mounts)
            hung = [look for look in looks.values() if look.waiting_seconds >= self._hang_seconds]
            # A thread that waits in a file system which is no longer there would never see its successor.
            if any(_waits_in_the_past(look, earlier, mounts) for look in hung):
                self.sampler.replace()
        resolution = resolve(
            self.properties,
            looks,
            mounts,
            self._remembered,
            device_uuids=self._uuids,
            last_known=self._last_known,
            hang_seconds=self._hang_seconds,
            silence=self.sampler.silence,
            accept=self._accepts,
            scope=self._scope,
        )
        self._remembered.update(resolution.found)
        self._last_known = {**self._last_known, **resolution.figures}
        bound = bind_limits(self._limits, resolution, looks, mounts, self._bound, self._hang_seconds)
        self._bound.update(bound.bound)
        return bound.observation

    @property
    def looks(self) -> Mapping[str, LogDirLook]:
        """The look at each directory of the broker that the last observation was made of."""
        return {str(path): self._looks[str(path)] for path in self.properties.directories}

    def used_by(self, process: BrokerProcess | None) -> Mapping[str, Place | None]:
        """Return the log dirs that the broker's process runs with, compared with the last looks."""
        if process is None:
            return {}
        watched: dict[str, LockFile | None] = {}
        for path, look in self.looks.items():
            mount = self._table.by_id.get(look.mount_id)
            watched[path] = (
                None
                if mount is None or look.lock_inode is None or look.failed_step is not None
                else (mount.device, look.lock_inode)
            )
        return process.used(watched, self._table)

    def wake_at(self, bands: Mapping[str, Band], named: frozenset[str] = frozenset()) -> None:
        """Have the sampler's alarm go off when a log dir leaves its band (see :mod:`kquota.disks.band`).

        One whose last figure is not within its band, because another log dir's counts for the volume or
        something has just changed, is left to the regular looks. The topics of the log dirs that are
        ``named`` are observed, and the alarm goes off when they change.
        """
        self.sampler.wake_at(
            {
                log_dir: (low, high)
                for log_dir, (low, high) in bands.items()
                if log_dir in self._looks and low < self._looks[log_dir].available_bytes < high
            },
            named,
        )

    def recall(self, recorded: Recorded) -> None:
        """Expect the log dirs that nothing is remembered of on the volumes that this broker last reported.

        One that is on another volume now has lost its mount. The last figures of a volume that can't be read
        count for it.
        """
        expected = {name: recorded.identities[name] for name in self._unproven & recorded.identities.keys()}
        self._remembered.update(expected)
        self._unproven.clear()
        self._last_known = {**recorded.figures, **self._last_known}

    def accept(self, log_dir: str | None = None) -> None:
        """Take the volume that ``log_dir`` (None: every log dir) is on now as the right one."""
        self._accepts = True
        if log_dir is None:
            self._remembered.clear()
            self._unproven.clear()
        else:
            self._remembered.pop(log_dir, None)
            self._unproven.discard(log_dir)

    def close(self) -> None:
        """End the sampling."""
        self.sampler.close()
        self._mounts.close()


def _waits_in_the_past(look: LogDirLook, earlier: MountTable, now: MountTable) -> bool:
    """Return whether the mount that a look waits for has gone or been covered, since ``earlier``."""
    if not look.mount_id:
        return bool(earlier.mounts) and earlier.mount_of(look.log_dir) != now.mount_of(look.log_dir)
    mount = now.by_id.get(look.mount_id)
    return mount is None or now.mount_of(mount.mount_point) != mount


@dataclass(frozen=True, slots=True)
class Recorded:
    """The volume of each log dir, and the last figures by volume id."""

    identities: Mapping[str, VolumeIdentity]
    figures: Mapping[str, LogDirLook]


def recorded_volumes(volumes: Iterable[Volume]) -> Recorded:
    """Read the volumes of a usage record; those that its agent never saw itself are skipped."""
    identities: dict[str, VolumeIdentity] = {}
    figures: dict[str, LogDirLook] = {}
    for volume in volumes:
        volume_id, mount_point = volume.volume_id, volume.mount_point
        if volume_id is None or mount_point is None or volume_id.startswith(UNSEEN):
            continue
        identity = VolumeIdentity(volume_id, volume.name, mount_point, "", volume.name, None)
        identities.update(dict.fromkeys(volume.log_dirs, identity))
        if volume.capacity_bytes > 0:
            capacity, free = volume.capacity_bytes, volume.capacity_bytes - volume.consumed_bytes
            inodes = (0, 0) if volume.inodes is None else volume.inodes[:2]
            figures[volume_id] = LogDirLook(
                "",
                capacity_bytes=capacity,
                available_bytes=free,
                inodes=inodes[0],
                available_inodes=inodes[1],
            )
    return Recorded(identities, figures)
