"""The inflow of a volume: measured from looks at its segments, and forecast.

    inflow from one look to the next = change of what leaves some day + what left in between

and what left in between is what the earlier look said would leave by then. Bytes that stay whatever happens
(compacted topics, partitions bound by size) are no part of it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from kquota_pipeline.forecast.history import BOUND_HOURS, DAY_HOURS, Floats, Looks
from kquota_pipeline.forecast.methods import median_slope

# Topics that still fill up are taken apart from the others: at most this many.
_MOST = 3
# Those that have ended are taken apart, too, if they once took this share of all that leaves.
_LARGE = 0.05
# A topic that was silent for longer than ever, and for this many hours, has ended.
_SILENT_HOURS, _SILENT_TIMES, _NEXT_TO_NOTHING = 4, 1.5, 0.02
# A topic that has flowed for long may stand still, as a mirror does that waits: for up to this share of the
# hours in which it flowed, and two days at most. A tenant who has left does not come back.
_SILENT_RATIO, _SILENT_MOST_HOURS = 0.25, 2 * DAY_HOURS
# One that still fills up has lost less than this share of what it grew by.
_LEFT = 0.05
# A topic whose first bytes are less than this share of the last ones is new.
_GREW = 0.3
# Bytes that leave before this share of their retention has passed were here before the topic was: a copy. It
# comes this many times faster than the topic takes in.
_COPY_AGE, _COPY_RATIO = 0.8, 2.0
_WEEK_HOURS = 7 * DAY_HOURS


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes per hour that flow in, [class, hour], on each hour from the first look to the last.

    The first class are all topics but those that still fill up, of which nothing has left yet, those that
    were copied here, as if they had always been here, and those that have ended. Of these, `filled_hours` is
    how long they had flowed in before the first look; it is infinite where bytes left then, as of the first
    class. `began` is the hour, an index, at which a class did. `is_new` is whether one that fills up began,
    or became much larger, within this history. `topics` are the topics of the looks that classes are, None of
    all others together.
    """

    first_hour: int
    inflow_bytes: Floats
    filled_hours: tuple[float, ...]
    began: tuple[int, ...]
    is_new: tuple[bool, ...]
    topics: tuple[int | None, ...]


def flow_of(looks: Looks) -> Flow:
    """Return what flowed in; there have to be at least two looks."""
    total = looks.leaving_bytes.sum(axis=1)
    steps = np.diff(looks.hours).astype(float)
    inflow = np.diff(total) + gone_within(looks.leaving_bytes[:-1], steps)
    # Bytes that went before their time were deleted by people.
    inflow = np.where(inflow < -3 * np.median(np.abs(inflow)), 0.0, inflow)
    classes, filled, began, is_new = [], [float("inf")], [0], [False]
    taken_in = _taken_in(looks, steps)
    copies = _copied_topics(looks, inflow, taken_in, steps)
    for topic, (copied, _) in copies.items():
        came = np.minimum(copied, np.maximum(inflow, 0.0))
        inflow, taken_in[:, topic] = inflow - came, taken_in[:, topic] - came
    filling = _filling_topics(looks, steps, copies)
    apart = [*filling, *_ended_topics(looks, taken_in, [*filling, *copies])]
    there = looks.filled()
    # Those of the copied that take in most are classes of their own: the others' history is none of theirs.
    largest = sorted(copies, key=lambda topic: -copies[topic][1])[:_MOST]
    for topic in largest:
        own = np.minimum(taken_in[:, topic], np.maximum(inflow, 0.0))
        inflow = inflow - own
        before = np.arange(len(steps)) < int(np.argmax(there[:, topic])) - 1
        classes.append(np.where(before, copies[topic][1] * steps, own))
        filled.append(float("inf"))
        began.append(0)
        is_new.append(False)
    topics: list[int | None] = [None, *largest, *apart]
    for topic in apart:
        sizes = looks.topic_bytes[:, topic]
        first = int(np.argmax(there[:, topic]))
        own = np.where(np.arange(len(steps)) >= first - 1, taken_in[:, topic], 0.0)
        own = np.minimum(own, np.maximum(inflow, 0.0))
        inflow = inflow - own
        classes.append(own)
        began.append(max(0, int(looks.hours[first] - looks.hours[0]) - 1))
        rate = float(own.sum()) / max(float(looks.hours[-1] - looks.hours[first]), 1.0)
        if topic in filling:
            filled.append(float(sizes[0]) / rate if rate > 0 and first == 0 else 0.0)
        else:
            filled.append(0.0 if first else float("inf"))
        is_new.append(topic in filling and float(sizes[first]) < _GREW * float(sizes[-1]))
    hours = np.arange(looks.hours[0], looks.hours[-1] + 1)
    per_hour = []
    for own in (inflow, *classes):
        summed = np.concatenate([[0.0], np.cumsum(own)])
        per_hour.append(np.diff(np.interp(hours, looks.hours, summed), prepend=0.0))
    if not looks.topics and (since := _excess_since(per_hour[0])) is not None:
        own = np.zeros(len(hours))
        days = -(-since // DAY_HOURS)
        usual = np.median(per_hour[0][-since - days * DAY_HOURS : -since].reshape(days, -1), axis=0)
        usual = np.tile(usual, days)[-since:] if days > 1 else usual[-since:]
        own[-since:] = np.maximum(per_hour[0][-since:] - usual, 0.0)
        per_hour = [per_hour[0] - own, own]
        filled, began, is_new = [*filled, 0.0], [*began, len(hours) - since - 1], [*is_new, True]
        topics.append(None)
    return Flow(
        int(looks.hours[0]), np.array(per_hour), tuple(filled), tuple(began), tuple(is_new), tuple(topics)
    )


def usual_inflow(looks: Looks) -> Floats:
    """Return what flowed into each topic in an hour of the last week, [topic], in the mean."""
    last = looks.since(int(looks.hours[-1]) - _WEEK_HOURS)
    steps = np.diff(last.hours).astype(float)
    return np.asarray(_taken_in(last, steps).sum(axis=0) / max(float(steps.sum()), 1.0))


def _taken_in(looks: Looks, steps: Floats) -> Floats:
    """Return what each topic took in from look to look, [step, topic]: its growth, and what left it."""
    left = looks.topic_soon_bytes[:-1] * np.maximum(steps, 1)[:, None]
    return np.asarray(np.maximum(np.diff(looks.topic_bytes, axis=0) + left, 0.0))


def _excess_since(inflow: Floats) -> int | None:
    """Return for how many hours more has flowed in than on all days before, None where it has not.

    Where looks name no topics, it is all that shows a new one.
    """
    days = min(len(inflow) // DAY_HOURS, 28)
    sums = inflow[-days * DAY_HOURS :].reshape(days, DAY_HOURS).sum(axis=1) if days else np.zeros(0)
    for age in range(min(7, days - 3), 0, -1):
        before = sums[:-age]
        highest, usual = float(before.max()), float(np.median(before))
        if float(sums[-age:].min()) > max(1.05 * highest, 1.1 * usual):
            return age * DAY_HOURS
    return None


def gone_within(leaving_bytes: Floats, hours: Floats) -> Floats:
    """Return of each look, [look], the bytes that leave within its number of hours, by straight lines between
    the bounds of the buckets.
    """
    bounds = np.concatenate([[0.0], BOUND_HOURS, [2 * BOUND_HOURS[-1]]])
    within = np.concatenate([np.zeros((len(leaving_bytes), 1)), np.cumsum(leaving_bytes, axis=1)], axis=1)
    index = np.clip(np.searchsorted(bounds, hours), 1, len(bounds) - 1)
    rows = np.arange(len(leaving_bytes))
    share = np.clip((hours - bounds[index - 1]) / (bounds[index] - bounds[index - 1]), 0.0, 1.0)
    low = within[rows, index - 1]
    return np.asarray(low + share * (within[rows, index] - low))


def _copied_topics(
    looks: Looks, inflow: Floats, taken_in: Floats, steps: Floats
) -> dict[int, tuple[Floats, float]]:
    """Return the topics of which replicas were copied here: of each the bytes of the copy, [step], and what
    it takes in per hour.

    A copy has bytes that leave sooner than any that came to a new topic. It comes much faster than the topic
    takes in: as much per hour as it holds per hour of its retention.
    """
    found: dict[int, tuple[Floats, float]] = {}
    there = looks.filled()
    for topic in np.flatnonzero(~there[0] & there.any(axis=0) & (looks.keep_hours > 0)).tolist():
        first, keep = int(np.argmax(there[:, topic])), float(looks.keep_hours[topic])
        age = looks.hours - looks.hours[first]
        young = (age >= 0) & (age < _COPY_AGE * keep)
        if not (looks.topic_soon_bytes[young, topic] > 0).any():
            continue
        steady = float(looks.topic_bytes[-1, topic]) / keep
        coming = taken_in[first - 1 :, topic] > _COPY_RATIO * steady * steps[first - 1 :]
        end = first - 1 + (len(coming) if coming.all() else int(np.argmin(coming)))
        arrival = slice(first - 1, end)
        # The bytes of a topic that enters the list of the largest ones were there before.
        if float(inflow[arrival].sum()) < 0.5 * float(taken_in[arrival, topic].sum()) or end < first:
            continue
        hours = float(steps[end:].sum())
        share = min(hours / DAY_HOURS, 1.0)
        rate = (1 - share) * steady
        if hours:
            rate += share * float(taken_in[end:, topic].sum()) / hours
        copied = np.zeros(len(steps))
        copied[arrival] = np.maximum(taken_in[arrival, topic] - rate * steps[arrival], 0.0)
        found[topic] = copied, rate
    return found


def _filling_topics(looks: Looks, steps: Floats, copies: Collection[int]) -> list[int]:
    """Return the topics that flow in and do not flow out yet, those that take in most first.

    Compacted ones are none of them: what they grow by never leaves.
    """
    if not looks.topics or len(looks.hours) < 3:
        return []
    first = np.argmax(looks.filled(), axis=0)
    columns = np.arange(len(looks.topics))
    begun_with = looks.topic_bytes[first, columns]
    grown = looks.topic_bytes[-1] - begun_with
    left = (looks.topic_soon_bytes[:-1] * np.maximum(steps, 1)[:, None]).sum(axis=0)
    total = looks.leaving_bytes.sum(axis=1)
    took_in = max(float(total[-1]), 1.0)
    unnamed = (first > 0) & (looks.topic_bytes[first - 1, columns] == 0)
    found = []
    for topic in np.flatnonzero((grown > 0.01 * took_in) & (left < _LEFT * grown)):
        never = float(looks.never_bytes[-1] - looks.never_bytes[first[topic]])
        # A topic that enters the list of the largest ones was there before.
        entered = unnamed[topic] and begun_with[topic] > _GREW * looks.topic_bytes[-1, topic]
        if never < 0.6 * grown[topic] and not entered and topic not in copies:
            found.append(int(topic))
    return sorted(found, key=lambda topic: -float(grown[topic]))[:_MOST]


def _ended_topics(looks: Looks, taken_in: Floats, filling: list[int]) -> list[int]:
    """Return the large topics that nothing flows into any more: deleted ones, and those of jobs."""
    if looks.topic_keep_hours is None:
        return []
    most = looks.topic_bytes.max(axis=0, initial=0.0)
    most[filling] = 0.0
    large = most > _LARGE * max(float(looks.leaving_bytes.sum(axis=1).max()), 1.0)
    found, deleted = [], looks.deleted()
    for topic in np.flatnonzero(large & (looks.topic_keep_hours > 0).any(axis=0)).tolist():
        begun = int(np.argmax(looks.topic_bytes[:, topic] > 0))
        if deleted[topic] or has_ended(taken_in[begun:, topic]):
            found.append(topic)
    return sorted(found, key=lambda topic: -float(most[topic]))[:_MOST]


def inflow_to_come(flow: Flow, hours: int) -> Floats:
    """Return the bytes of each hour to come, [class, hour]: level, slope, and the rhythm of day and week."""
    of_day, of_hour = _rhythm(flow.inflow_bytes[0])
    found = []
    for number, began in enumerate(flow.began):
        own = flow.inflow_bytes[number, began + 1 :]
        own_day, own_hour = (of_day, of_hour) if number == 0 else _rhythm(own)
        if number and len(own) < 2 * DAY_HOURS:
            own_hour = of_hour
        if number and len(own) < 15 * DAY_HOURS:
            own_day = of_day
        if number and has_ended(own):
            found.append(np.zeros(hours))
        else:
            found.append(_continued(own, (own_day[:, None] * own_hour[None]).ravel(), hours))
    return np.array(found)


def _rhythm(inflow: Floats) -> tuple[Floats, Floats]:
    """Return the factors of the days of a week and of the hours of a day, both back from the last hour: index
    0 is a week, or a day, before the first hour to come. Little history makes them flat.
    """
    of_day, of_hour = np.ones(7), np.ones(DAY_HOURS)
    days = min(len(inflow) // DAY_HOURS, 28)
    if days < 1:
        return of_day, of_hour
    table = np.maximum(inflow[-days * DAY_HOURS :].reshape(days, DAY_HOURS), 0.0)
    usual = np.median(table, axis=0)
    if usual.sum() <= 0:
        return of_day, of_hour
    of_hour = 1 + (usual / usual.mean() - 1) * days / (days + 1.0)
    weeks = days // 7
    if weeks >= 2:
        sums = table[-weeks * 7 :].mean(axis=1).reshape(weeks, 7)
        sums = sums / np.maximum(sums.mean(axis=1, keepdims=True), 1e-300)
        of_day = 1 + (np.median(sums, axis=0) - 1) * weeks / (weeks + 0.5)
        of_day = of_day / of_day.mean()
    return of_day, of_hour


def has_ended(own: Floats) -> bool:
    """Whether nothing flows in any more: for longer than ever before since it began."""
    flows = np.flatnonzero(own > _NEXT_TO_NOTHING * own.mean()) if len(own) else np.zeros(0)
    if not len(flows):
        return True
    silent = len(own) - 1 - int(flows[-1])
    longest = int(np.diff(flows).max()) - 1 if len(flows) > 1 else 0
    patience = min(_SILENT_RATIO * len(flows), _SILENT_MOST_HOURS)
    return silent >= max(_SILENT_HOURS, _SILENT_TIMES * longest, patience)


def _continued(own: Floats, shape: Floats, hours: int) -> Floats:
    to_come = shape[np.arange(hours) % _WEEK_HOURS]
    if not len(own):
        return np.zeros(hours)
    # The rhythm of the hours that were: the last one is the last of a week.
    back = shape[(-np.arange(len(own), 0, -1)) % _WEEK_HOURS]
    days = len(own) // DAY_HOURS
    if days < 2:
        recent = slice(-DAY_HOURS, None)
        return to_come * max(float(own[recent].sum() / max(float(back[recent].sum()), 1e-300)), 0.0)
    used = min(days, 28)
    sums = own[-used * DAY_HOURS :].reshape(used, DAY_HOURS).sum(axis=1)
    sums = np.maximum(sums / back[-used * DAY_HOURS :].reshape(used, DAY_HOURS).sum(axis=1), 0.0)
    usual = float(np.median(sums[-7:]))
    calm = np.clip(sums, 0.4 * usual, 2.0 * usual)
    weights = 0.8 ** np.arange(used)[::-1]
    level = float(calm @ weights / weights.sum())
    slope = 0.5 * median_slope(calm[-28:]) if used >= 7 else 0.0
    slope = float(np.clip(slope, -0.02 * level, 0.03 * level))
    ahead = np.arange(hours) / DAY_HOURS
    damped = np.minimum(ahead, 14.0)
    return np.asarray(to_come * np.maximum(level + slope * damped, 0.0))
