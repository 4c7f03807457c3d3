"""Relief options and plans, in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from kquota.disks.segments import PartitionOnDisk, PartitionState
from kquota.display.figures import size_text
from kquota.policy.timestamps import format_utc
from kquota.retention.inflow import THROTTLED_RATE, Inflow
from kquota.retention.relief import LOCAL_RETENTION, Option, Step, StepKind

_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_MOST_GROUPS = 5
_WITH_RESERVED_BLOCKS = ("ext2", "ext3", "ext4")


def span_text(milliseconds: int | None) -> str:
    """Return a span of time in its two largest units: ``7 d``, ``4 d 1 h``, ``90 s``; None is unlimited."""
    if milliseconds is None:
        return "unlimited"
    parts, left = [], milliseconds
    for unit_ms, unit in _SPANS:
        count, left = divmod(left, unit_ms)
        if count:
            parts.append(f"{count} {unit}")
        if len(parts) == 2 or (parts and not count):
            break
    return " ".join(parts) or f"{milliseconds} ms"


def step_text(step: Step) -> str:
    """Return what a step does."""
    match step.kind:
        case StepKind.WAIT:
            return "wait: retention does it by itself"
        case StepKind.LOGDIR_MOVE:
            return f"move partition {step.target} from {step.source} to {step.destination}"
        case StepKind.REPLICA_MOVE:
            return f"move partition {step.target} from brokers {step.source} to {step.destination}"
        case StepKind.THROTTLE if step.setting == THROTTLED_RATE:
            rate = size_text(int(step.destination or 0))
            return f"throttle their replication to broker {step.target} to {rate}/s: {step.setting}"
        case StepKind.THROTTLE:
            return f"slow the copying of topic {step.target}: {step.setting} {step.destination}"
        case StepKind.SEGMENT:
            return f"roll the active segments of topic {step.target}: {_change(step)}"
        case _:
            return f"keep less of topic {step.target}: {_change(step)}"


def loss_text(step: Step, *, groups_known: bool) -> str:
    """Return what is lost with a step, for people; empty for nothing."""
    if step.kind is StepKind.LOGDIR_MOVE:
        return "nothing: its records stay on this broker"
    if step.kind is StepKind.REPLICA_MOVE:
        return "nothing: its records are on as many brokers and racks as before"
    if step.kind is StepKind.THROTTLE:
        return (
            "" if step.setting == THROTTLED_RATE else "nothing: these replicas stay behind until it is undone"
        )
    if step.kind is not StepKind.RETENTION:
        return ""
    if step.setting == LOCAL_RETENTION:
        return "nothing: its records stay in remote storage"
    lost = f"the records of topic {step.target} that are older than {span_text(step.to)}, on all brokers"
    if step.unread_by:
        groups = ", ".join(step.unread_by[:_MOST_GROUPS])
        more = len(step.unread_by) - _MOST_GROUPS
        return f"{lost}; not yet read by {groups}" + (f" and {more} more" if more > 0 else "")
    known = "all consumer groups have read them" if groups_known else "it is not known who has read them"
    return f"{lost}; {known}"


def inflow_text(volume: str, inflow: Inflow) -> str:
    """Return what fills a volume while producers are held, how fast, and until when."""
    names = sorted({*inflow.replication, *inflow.copies})
    more = len(names) - _MOST_GROUPS
    what = ", ".join(names[:_MOST_GROUPS]) + (f" and {more} more" if more > 0 else "")
    how = "replication" if inflow.replication else "a copy between log dirs"
    seconds = inflow.full_seconds
    full = "" if seconds is None else f", and is full in {span_text(seconds * 1000)}"
    rate = size_text(inflow.bytes_per_second)
    return f"{how} fills volume {volume} at {rate}/s: it gets replicas of {what}{full}"


def by_hand(
    partitions: Iterable[PartitionOnDisk], volume: str, fs_type: str, reserved_bytes: int
) -> Iterator[str]:
    """Yield what else takes room on a volume, which people alone may give back."""
    stray = [one for one in partitions if one.state is PartitionState.STRAY and one.size_bytes]
    if stray:
        names = sorted({one.topic for one in stray})
        more = len(names) - _MOST_GROUPS
        what = ", ".join(names[:_MOST_GROUPS]) + (f" and {more} more" if more > 0 else "")
        size = size_text(sum(one.size_bytes for one in stray))
        yield (
            f"{size} are in stray directories (…-stray) of topics {what}: neither Kafka nor kquota deletes"
            " them, because this broker does not hold these partitions any more"
        )
    if reserved_bytes > 0 and fs_type in _WITH_RESERVED_BLOCKS:
        yield (
            f"{size_text(reserved_bytes)} are reserved for root: tune2fs -m 0 {volume} gives them back, where"
            " the volume has nothing but log dirs"
        )


def option_lines(number: int, option: Option, now: datetime, *, groups_known: bool) -> Iterator[str]:
    """Yield an option as lines: its bytes and its time, then its steps with their losses."""
    in_ms = option.by_ms - round(now.timestamp() * 1000)
    verdict = "enough" if option.enough else "not enough"
    by = datetime.fromtimestamp(option.by_ms / 1000, UTC).replace(microsecond=0)
    within = span_text(max(in_ms, 0) // 1000 * 1000)
    if option.kind is StepKind.THROTTLE:
        yield f"{number}. frees nothing, and slows what is copied to this volume"
    else:
        at = f"{format_utc(by)[:-5]}Z ({within})"
        yield f"{number}. frees {size_text(option.frees_bytes)} by {at}, {verdict}"
    for step in option.steps:
        yield f"   {step_text(step)}"
        if loss := loss_text(step, groups_known=groups_known):
            yield f"   loses {loss}"


def move_command(bootstrap: str, plan: str, copy_bytes_per_second: int | None, *, is_plain: bool) -> str:
    """Return the command of Kafka's own tool for a plan of moves; without a rate, it copies at will."""
    security = "" if is_plain else " --command-config operator.properties"
    throttle = "" if copy_bytes_per_second is None else f" --throttle {copy_bytes_per_second}"
    file = f"--reassignment-json-file {shlex.quote(plan)}"
    return f"kafka-reassign-partitions.sh --bootstrap-server {bootstrap}{security} {file} --execute{throttle}"


def options_document(options: Iterable[Option], *, groups_known: bool) -> Sequence[dict[str, Any]]:
    """Return options as JSON."""
    return [
        {
            "enough": option.enough,
            "frees_bytes": option.frees_bytes,
            "by": format_utc(datetime.fromtimestamp(option.by_ms / 1000, UTC)),
            "steps": [
                {
                    "kind": step.kind.value,
                    "target": step.target,
                    "setting": step.setting,
                    "from": step.current if step.source is None else step.source,
                    "to": step.to if step.destination is None else step.destination,
                    "frees_bytes": step.frees_bytes,
                    "unread_by": list(step.unread_by),
                    "loses": loss_text(step, groups_known=groups_known),
                }
                for step in option.steps
            ],
        }
        for option in options
    ]


def _change(step: Step) -> str:
    return f"{step.setting} {span_text(step.to)} instead of {span_text(step.current)}"
