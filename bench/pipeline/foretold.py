"""How right forecasts are: fleets of volumes, each forecast at its cut.

AutoETS takes part where `statsforecast` can be imported: it is no requirement of the pipeline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from bench.pipeline.figures import FORECAST, Foresight
from bench.pipeline.fleets import clusters, recorded
from bench.pipeline.fleets.made import MadeVolume
from kquota_pipeline.forecast.conformal import Spread, spread_of, thinned, within_disk
from kquota_pipeline.forecast.days import days_of
from kquota_pipeline.forecast.history import DAY_HOURS, Floats
from kquota_pipeline.forecast.probabilities import POSSIBLE, reached_by_day
from kquota_pipeline.forecast.trials import without_gaps
from kquota_pipeline.forecast.volume import Basis, VolumeForecast, volume_forecast
from kquota_pipeline.session import start_session

OURS, BY_USAGE, NAIVE, LINE, ETS = FORECAST, "forecast by usage alone", "naive", "predict_linear", "AutoETS"
ERROR_DAYS, CROSSING_DAYS = 7, 14
_SPREAD = 0.8
_NEAR = 0.1
# A volume that comes to its limit once a week crosses none.
_THERE_DAYS = 7


@dataclass(frozen=True, slots=True)
class Answer:
    """Of one volume: crests to come, the interval of 80 % where a method has one, and whether it says that
    the soft limit is reached within CROSSING_DAYS.
    """

    crests: Floats
    low: Floats | None
    high: Floats | None
    crosses: bool


Method = Callable[[Sequence[MadeVolume]], list[Answer | None]]


def foresight(
    fleet: str, volumes: Sequence[MadeVolume], method: str, answers: Iterable[Answer | None]
) -> list[Foresight]:
    """Return how right the answers of a method are, by family of volumes."""
    by_family: dict[str, list[tuple[MadeVolume, Answer]]] = {}
    for volume, answer in zip(volumes, answers, strict=True):
        if answer is not None:
            by_family.setdefault(volume.family, []).append((volume, answer))
    return [_judged(fleet, family, method, pairs) for family, pairs in by_family.items()]


def _judged(fleet: str, family: str, method: str, pairs: Sequence[tuple[MadeVolume, Answer]]) -> Foresight:
    errors, highest, inside = [], [], []
    counts = dict.fromkeys(("crossed", "found", "foreseeable", "foreseen", "not_crossed", "false"), 0)
    for volume, answer in pairs:
        came = volume.crests_to_come(CROSSING_DAYS)
        days = slice(0, ERROR_DAYS)
        errors.append(float(np.abs(answer.crests[days] - came[days]).mean()) / volume.series.capacity_bytes)
        highest.append(abs(float(answer.crests.max()) / float(np.nanmax(came)) - 1))
        if answer.low is not None and answer.high is not None:
            inside.append(float(((answer.low <= came) & (came <= answer.high))[days].mean()))
        lately = volume.known.hours > volume.cut - _THERE_DAYS * DAY_HOURS
        if volume.known.crest_bytes[lately].max(initial=0.0) >= volume.soft_bytes:
            continue  # it is there already, be it at the weekend alone
        crossed = bool(np.nanmax(came) >= volume.soft_bytes)
        counts["crossed" if crossed else "not_crossed"] += 1
        if answer.crosses:
            counts["found" if crossed else "false"] += 1
        if crossed and volume.is_foreseeable(CROSSING_DAYS):
            counts["foreseeable"] += 1
            counts["foreseen"] += answer.crosses
    return Foresight(
        fleet,
        family,
        method,
        len(pairs),
        float(np.mean(errors)),
        float(np.mean(inside)) if inside else None,
        **counts,
        highest_error_ratio=float(np.mean(highest)),
        highest_near=sum(error <= _NEAR for error in highest),
    )


def ours(volumes: Sequence[MadeVolume]) -> list[Answer | None]:
    """Forecast all volumes as the job does: errors of those of one kind are pooled."""
    found = [volume_forecast(volume.known, volume.known_looks) for volume in volumes]
    spreads: Mapping[Basis, Spread] = {
        basis: spread_of(
            np.concatenate([thinned(one.past_errors) for one in found if one and one.basis is basis]),
            np.concatenate([thinned(one.past_highest) for one in found if one and one.basis is basis]),
        )
        for basis in {one.basis for one in found if one}
    }
    return [
        None if one is None else _answer(volume, one, spreads[one.basis])
        for volume, one in zip(volumes, found, strict=True)
    ]


def _answer(volume: MadeVolume, found: VolumeForecast, spread: Spread) -> Answer:
    capacity_bytes = volume.series.capacity_bytes
    shown = within_disk(found.crest_bytes, found.usual_error_bytes, spread, capacity_bytes, _SPREAD)
    crests, low, high = (own[:CROSSING_DAYS] for own in shown)
    reached = reached_by_day(found.crest_bytes, found.usual_error_bytes, spread, volume.soft_bytes)
    return Answer(crests, low, high, bool(reached[CROSSING_DAYS - 1] >= POSSIBLE))


def naive(volumes: Sequence[MadeVolume]) -> list[Answer | None]:
    """Say that the crest of the last day comes again."""
    last = [float(volume.known.crest_bytes[-DAY_HOURS:].max()) for volume in volumes]
    return [Answer(np.full(CROSSING_DAYS, crest), None, None, False) for crest in last]


def predict_linear(volumes: Sequence[MadeVolume]) -> list[Answer | None]:
    """Say what a line through the hours of the last day says, as Prometheus' function does."""
    return [_by_line(volume) for volume in volumes]


def _by_line(volume: MadeVolume) -> Answer:
    known = volume.known
    recent = known.hours > known.hours[-1] - DAY_HOURS
    hours = known.hours[recent] - known.hours[-1]
    line = (
        np.polyfit(hours, known.crest_bytes[recent], 1)
        if len(hours) > 1
        else np.array([0.0, known.crest_bytes[-1]])
    )
    crests = np.polyval(line, np.arange(1, CROSSING_DAYS + 1) * DAY_HOURS)
    return Answer(crests, None, None, bool(crests.max() >= volume.soft_bytes))


def auto_ets(volumes: Sequence[MadeVolume]) -> list[Answer | None]:
    """Say what AutoETS makes of the crests of days.

    Raises:
        ImportError: statsforecast is not installed.
    """
    models: Any = import_module("statsforecast.models")

    def of_volume(volume: MadeVolume) -> Answer | None:
        crests = without_gaps(days_of(volume.known))
        if crests is None:
            return None
        scaled = crests / volume.series.capacity_bytes
        season = 7 if len(crests) > 2 * 7 else 1
        try:
            said = models.AutoETS(season_length=season).forecast(y=scaled, h=CROSSING_DAYS, level=[80])
        except Exception:
            return _by_crest(volume, float(crests[-1]))
        bands = (said[name] * volume.series.capacity_bytes for name in ("mean", "lo-80", "hi-80"))
        mean, low, high = bands
        return Answer(mean, low, high, bool(mean.max() >= volume.soft_bytes))

    return [of_volume(volume) for volume in volumes]


def _by_crest(volume: MadeVolume, crest: float) -> Answer:
    level = np.full(CROSSING_DAYS, crest)
    return Answer(level, level, level, bool(crest >= volume.soft_bytes))


def measure(fleet: str, volumes: Sequence[MadeVolume]) -> list[Foresight]:
    """Return how right each method is, by family, and of ours also without looks at segments."""
    blind = [volume.without_looks() for volume in volumes]
    found = foresight(fleet, volumes, OURS, ours(volumes))
    found += foresight(fleet, blind, BY_USAGE, ours(blind))
    found += foresight(fleet, volumes, NAIVE, naive(volumes))
    found += foresight(fleet, volumes, LINE, predict_linear(volumes))
    try:
        found += foresight(fleet, volumes, ETS, auto_ets(volumes))
    except ImportError:
        print("without AutoETS: statsforecast is not installed", file=sys.stderr)
    return [*found, *together(found)]


def together(found: Sequence[Foresight]) -> list[Foresight]:
    """Return each method's figures over all families."""
    methods = list(dict.fromkeys(one.method for one in found))
    return [_sum("all", [one for one in found if one.method == method]) for method in methods]


def _sum(family: str, parts: Sequence[Foresight]) -> Foresight:
    volumes = sum(one.volumes for one in parts)
    covered = [one.covered_ratio * one.volumes for one in parts if one.covered_ratio is not None]
    return replace(
        parts[0],
        family=family,
        volumes=volumes,
        mean_error_ratio=sum(one.mean_error_ratio * one.volumes for one in parts) / volumes,
        covered_ratio=sum(covered) / volumes if covered else None,
        crossed=sum(one.crossed for one in parts),
        found=sum(one.found for one in parts),
        foreseeable=sum(one.foreseeable for one in parts),
        foreseen=sum(one.foreseen for one in parts),
        not_crossed=sum(one.not_crossed for one in parts),
        false=sum(one.false for one in parts),
        highest_error_ratio=sum(one.highest_error_ratio * one.volumes for one in parts) / volumes,
        highest_near=sum(one.highest_near for one in parts),
    )


def fleet_of(name: str, share: float = 1.0) -> list[MadeVolume]:
    """Return a fleet by its name, or about this share of its volumes; `recorded` needs Spark for a while.

    Raises:
        ValueError: there is no such fleet.
    """
    match name:
        case "clusters":
            return clusters.fleet(1, max(round(60 * share), 1))
        case "recorded":
            session = start_session("kquota bench", {"spark.sql.shuffle.partitions": "2"}, print)
            try:
                return recorded.fleet(session)
            finally:
                session.stop()
    raise ValueError(f"there is no fleet {name}")


def judge(name: str, share: float = 1.0) -> list[Foresight]:
    """Return how right each method is on a fleet, or on a share of it."""
    return measure(name, fleet_of(name, share))
