"""From looks at log dirs to volumes: which file system each directory is on, and whether it can be judged.

Pure: everything that was seen comes in as arguments. The rule above all others: figures count only for the
file system that is remembered for a log dir. A directory left behind by a mount that is gone is on the
root file system, whose free space proves nothing about the volume.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from kquota.disks.identity import VolumeIdentity, identify
from kquota.disks.mountinfo import Mount, MountTable
from kquota.disks.observation import UNKNOWN, Failure, InodeCount, Observation, VolumeObservation
from kquota.disks.probe import LogDirLook
from kquota.disks.server_properties import BrokerProperties
from kquota.formats.strict_json import printable
from kquota.policy.decision import Scope
from kquota.policy.topic_scope import Topics, all_of
from kquota.policy.volume import VolumeRole

UNSEEN = "unknown@"
"""How the ids begin of volumes that stand for a log dir whose own volume was never seen."""
FIXED_INODES = frozenset({"ext2", "ext3", "ext4"})
"""The file systems whose number of inodes is decided when they are made.

Others make inodes of free space: what statvfs reports of them is no limit of its own, or is 0.
"""
_ERRNO_REASONS = {
    errno.ENOENT: "does not exist; mount it, or correct log.dirs in server.properties",
    errno.ENOTDIR: "is not a directory",
    errno.EACCES: "permission denied; run kquota access as root",
    errno.ELOOP: "is a loop of symbolic links",
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """An observation, and what it adds to the caller's memory.

    ``found`` is the volume of each log dir that was seen on the volume expected there, or seen for the first
    time; ``figures`` are those of this observation's volumes, by volume id, the last known ones included;
    ``by_device`` are the ids of the volumes that were found now.
    """

    observation: Observation
    found: Mapping[str, VolumeIdentity]
    figures: Mapping[str, LogDirLook]
    by_device: Mapping[str, str]


@dataclass(slots=True)
class _Volume:
    identity: VolumeIdentity
    log_dirs: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    looks: list[LogDirLook] = field(default_factory=list)


def resolve(
    properties: BrokerProperties,
    looks: Mapping[str, LogDirLook],
    mounts: MountTable,
    remembered: Mapping[str, VolumeIdentity],
    *,
    device_uuids: Mapping[str, str] | None = None,
    last_known: Mapping[str, LogDirLook] | None = None,
    hang_seconds: float = 5.0,
    silence: str | None = None,
    accept: bool = False,
    scope: Scope = Scope.CLUSTER,
) -> Resolution:
    """Resolve log dirs to volumes.

    ``looks`` are by configured path; ``remembered`` is the volume each log dir was on when last found;
    ``device_uuids`` are by "major:minor", for file systems whose UUID the looks don't provide; ``last_known``
    is by volume id. A look without an answer for ``hang_seconds`` is a failure. ``silence`` is the reason why
    no look can be trusted. ``accept`` believes every log dir that was never found before. Several log
    dirs on one file system are one volume, as full as the fullest. ``scope`` is the one configured: what a
    missing right leads to depends on it.
    """
    last_known = last_known or {}
    log_dirs = [str(path) for path in properties.directories]
    mount_by_dir: dict[str, Mount] = {}
    failure_by_dir: dict[str, str] = {}
    for log_dir in log_dirs:
        answer = judge_look(looks.get(log_dir) or LogDirLook(log_dir), mounts, hang_seconds)
        if isinstance(answer, Mount):
            mount_by_dir[log_dir] = answer
        else:
            failure_by_dir[log_dir] = answer
    identities, warnings = _identify_devices(
        log_dirs, mount_by_dir, looks, device_uuids or {}, mounts, remembered
    )

    volumes: dict[str, _Volume] = {}
    found_now: dict[str, Mount] = {}
    is_formatted = any(looks[log_dir].formatted for log_dir in log_dirs if log_dir in looks)
    for log_dir in log_dirs:
        mount, expected = mount_by_dir.get(log_dir), remembered.get(log_dir)
        if mount is None:
            identity = expected or _presumed_identity(log_dir, mounts, identities)
            failure = f"{log_dir}: {failure_by_dir[log_dir]}"
        elif expected is not None and not _is_expected(expected, mount, identities[mount.device], mounts):
            identity, failure = expected, _gone(log_dir, expected, mount, identities, mounts)
        elif (
            expected is None
            and not accept
            and is_formatted
            and looks[log_dir].formatted is False
            and mounts.is_root(mount)
        ):
            identity, failure = _unseen(log_dir), _unformatted(log_dir)
        else:
            identity = identities[mount.device]
            volume = volumes.setdefault(identity.volume_id, _Volume(identity))
            volume.identity = identity
            found_now[log_dir] = mount
            _take_look(volume, looks[log_dir], mount)
            if mounts.is_root(mount):
                warnings.append(f"{log_dir} is on the root file system: a full log dir there stops the host")
            volume.log_dirs.append(log_dir)
            continue
        volume = volumes.setdefault(identity.volume_id, _Volume(identity))
        volume.failures.append(Failure(log_dir, failure))
        volume.log_dirs.append(log_dir)

    needs_topics = {str(path) for path in properties.log_dirs} if scope is Scope.VOLUME else set()
    warnings += [
        _unlisted(log_dir, needs_topics=log_dir in needs_topics)
        for log_dir in found_now
        if looks[log_dir].list_errno == errno.EACCES
    ]
    observed, figures = [], {}
    for volume, name in zip(volumes.values(), _unique_names(volumes.values()), strict=True):
        known = _figures(volume.looks) or last_known.get(volume.identity.volume_id)
        if known is not None:
            figures[volume.identity.volume_id] = known
        if silence is not None:
            volume.failures.append(Failure(None, silence))
        topics = [looks[log_dir].topics if log_dir in looks else None for log_dir in volume.log_dirs]
        observed.append(_observe(volume, name, known, properties, reduce(all_of, topics)))
    found = {
        log_dir: replace(
            identities[mount.device], name=_name_of(log_dir, observed), mount_point=mount.mount_point
        )
        for log_dir, mount in found_now.items()
    }
    by_device = {mount.device: printable(identities[mount.device].volume_id) for mount in found_now.values()}
    return Resolution(Observation(tuple(observed), tuple(warnings)), found, figures, by_device)


def _figures(looks: Sequence[LogDirLook]) -> LogDirLook | None:
    """Return the figures of a volume: the fullest log dir counts, for bytes and for inodes; None without one.

    They differ by the data written between two looks, and where a directory has a quota of its own (a project
    quota of XFS or ext4): statvfs then reports the quota.
    """
    fullest = max(looks, key=_fullness, default=None)
    counted = [look for look in looks if look.inodes > 0]
    if fullest is None or not counted:
        return fullest
    scarcest = min(counted, key=lambda look: look.available_inodes / look.inodes)
    return replace(fullest, inodes=scarcest.inodes, available_inodes=scarcest.available_inodes)


def _fullness(figures: LogDirLook) -> tuple[float, float]:
    """Order figures by how full they are, equal ones by age."""
    return figures.consumed_bytes / figures.capacity_bytes, figures.sampled_at_monotonic or 0.0


def judge_look(look: LogDirLook, mounts: MountTable, hang_seconds: float) -> Mount | str:
    """Return the mount that answered, or why the directory can't be judged."""
    if look.waiting_seconds >= hang_seconds:
        return f"no answer from the file system for {hang_seconds:g} s"
    if look.failed_step is not None:
        if look.failed_errno in _ERRNO_REASONS:
            return _ERRNO_REASONS[look.failed_errno]
        return f"{look.failed_step} failed: {_errno_text(look.failed_errno)}"
    if look.sampled_at_monotonic is None:
        return "not sampled yet"
    return mounts.by_id.get(look.mount_id) or "its mount is changing"


def _errno_text(number: int) -> str:
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"


def _take_look(volume: _Volume, look: LogDirLook, mount: Mount) -> None:
    """Add the result of a look at the expected file system."""
    log_dir = look.log_dir
    if mount.fault is not None:
        volume.failures.append(Failure(None, mount.fault))
    if look.list_errno not in (0, errno.EACCES):
        reason = f"{log_dir}: can't be listed: {_errno_text(look.list_errno)}"
        volume.failures.append(Failure(log_dir, reason))
    if look.link is not None:
        volume.failures.append(Failure(log_dir, _linked(log_dir, look.link)))
    if look.capacity_bytes <= 0:
        volume.failures.append(Failure(log_dir, f"{log_dir}: the file system reports no capacity"))
        return
    if mount.fs_type not in FIXED_INODES:
        look = replace(look, inodes=0, available_inodes=0)
    volume.looks.append(look)


def _linked(log_dir: str, partition: str) -> str:
    """Return what is wrong with a partition whose directory is a link: Kafka appends where it leads."""
    return (
        f"{log_dir}/{partition} is a symbolic link to another file system, or to where the agent can't look:"
        " Kafka writes there, and fills a disk that this log dir is not on (move the directory back while the"
        " broker is stopped, and make the other disk a log dir of its own)"
    )


def _unlisted(log_dir: str, *, needs_topics: bool) -> str:
    """Return what follows from a missing right to list a log dir; its figures are right without it."""
    warning = f"{log_dir} can't be listed (permission denied): errors of its disk may go unseen"
    if needs_topics:
        warning += (
            ", and all producers are held while its volume is over a limit, because its topics are not known"
        )
    return warning


def _identify_devices(
    log_dirs: Iterable[str],
    mount_by_dir: Mapping[str, Mount],
    looks: Mapping[str, LogDirLook],
    device_uuids: Mapping[str, str],
    mounts: MountTable,
    remembered: Mapping[str, VolumeIdentity],
) -> tuple[dict[str, VolumeIdentity], list[str]]:
    """Identify each file system of the mount table that matters, by "major:minor"."""
    shown: dict[str, Mount] = {}
    uuids: dict[str, str] = {}
    for log_dir in log_dirs:
        mount = mount_by_dir.get(log_dir)
        if mount is None:
            continue
        best = min(shown.get(mount.device, mount), mount, key=lambda one: (len(one.root), one.mount_point))
        shown[mount.device] = best
        uuid = looks[log_dir].fs_uuid or device_uuids.get(mount.device)
        if uuid is not None and mount.fs_type != "tmpfs":  # each mount of tmpfs makes a UUID of its own
            uuids[mount.device] = uuid
    for log_dir in log_dirs:
        presumed = None if log_dir in mount_by_dir else mounts.mount_of(log_dir)
        if presumed is not None and presumed.device not in shown:
            shown[presumed.device] = presumed
            if (uuid := device_uuids.get(presumed.device)) is not None:
                uuids[presumed.device] = uuid
    for log_dir, mount in mount_by_dir.items():
        # No source has it at the moment: as far as can be seen it is the one that was there before.
        before = None if mount.device in uuids else remembered.get(log_dir)
        if before is None or before.fs_uuid is None:
            continue
        if before.is_same(identify(mount, None), mount_point=mount.mount_point):
            uuids[mount.device] = before.fs_uuid
    warnings = []
    for uuid in sorted(set(uuids.values())):
        twins = [device for device in shown if uuids.get(device) == uuid]
        if len(twins) > 1:
            places = " and ".join(shown[device].mount_point for device in twins)
            warnings.append(f"the file systems at {places} have the same UUID {uuid}: one is a copy")
            for device in twins:
                del uuids[device]
    return {device: identify(mount, uuids.get(device)) for device, mount in shown.items()}, warnings


def _presumed_identity(
    log_dir: str, mounts: MountTable, identities: Mapping[str, VolumeIdentity]
) -> VolumeIdentity:
    """Name a volume for a log dir that has never been seen: the mount its path lies on, but never the root's.

    A path on the root file system may be a symbolic link, or wait for its mount.
    """
    mount = mounts.mount_of(log_dir)
    if mount is not None and not mounts.is_root(mount):
        return identities[mount.device]
    return _unseen(log_dir)


def _unseen(log_dir: str) -> VolumeIdentity:
    return VolumeIdentity(f"{UNSEEN}{log_dir}", log_dir, log_dir, UNKNOWN, UNKNOWN, None)


def _is_expected(expected: VolumeIdentity, mount: Mount, present: VolumeIdentity, mounts: MountTable) -> bool:
    # A log dir that waited on the root file system for its mount, for example at the very first boot, has got
    # it.
    has_arrived = expected.mount_point == "/" and not mounts.is_root(mount)
    return has_arrived or expected.is_same(present, mount_point=mount.mount_point)


def _gone(
    log_dir: str,
    expected: VolumeIdentity,
    mount: Mount,
    identities: Mapping[str, VolumeIdentity],
    mounts: MountTable,
) -> str:
    root = ", the root file system" if mounts.is_root(mount) else ""
    return (
        f"the mount of {expected} is gone; {log_dir} is now on {identities[mount.device]}{root} "
        "(kquota volumes --accept, if that is meant)"
    )


def _unformatted(log_dir: str) -> str:
    return (
        f"{log_dir} is on the root file system and has no meta.properties, which other directories of this"
        " broker have: its mount is missing (kquota volumes --accept, if that is meant)"
    )


def _observe(
    volume: _Volume,
    name: str,
    known: LogDirLook | None,
    properties: BrokerProperties,
    topics: Topics | None,
) -> VolumeObservation:
    data = {str(path) for path in properties.log_dirs}
    return VolumeObservation(
        name=name,
        volume_id=printable(volume.identity.volume_id),
        mount_point=volume.identity.mount_point,
        fs_type=volume.identity.fs_type,
        log_dirs=tuple(volume.log_dirs),
        role=VolumeRole.DATA if data & set(volume.log_dirs) else VolumeRole.METADATA,
        capacity_bytes=None if known is None else known.capacity_bytes,
        consumed_bytes=None if known is None else known.consumed_bytes,
        sampled_at_monotonic=None if known is None else known.sampled_at_monotonic,
        failures=tuple(dict.fromkeys(volume.failures)),
        topics=topics,
        inodes=_inodes(known),
    )


def _inodes(known: LogDirLook | None) -> InodeCount | None:
    if known is None or known.inodes <= 0:
        return None
    return InodeCount(known.inodes, min(known.available_inodes, known.inodes))


def _unique_names(volumes: Iterable[_Volume]) -> list[str]:
    """Name the volumes by their source, with mount point, and if need be id, where that is not unique.

    A report with a name that is not fit to print would be refused by its readers.
    """
    identities = [volume.identity for volume in volumes]
    names = [printable(identity.name) for identity in identities]
    for suffixes in (
        [f"@{identity.mount_point}" for identity in identities],
        [f"#{identity.volume_id}" for identity in identities],
    ):
        names = [
            printable(name + suffix) if names.count(name) > 1 else name
            for name, suffix in zip(names, suffixes, strict=True)
        ]
    return names


def _name_of(log_dir: str, volumes: Iterable[VolumeObservation]) -> str:
    return next(volume.name for volume in volumes if log_dir in volume.log_dirs)
