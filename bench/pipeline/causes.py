"""Why an aim is missed, as far as the figures of the same run tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.pipeline.claims import Verdict
from bench.pipeline.plan import Profile
from bench.pipeline.results import Figure, Saved
from bench.pipeline.work import CHOOSING, ONE_CLUSTER, READING, REGRESSION, REPLAY

_HASHING = "Tick replay: the name of the cluster is part of the key, and Spark hashes a text for each row."
_REGRESSION = """\
Regression: the same, with two texts in the key, the cluster's and the volume's. Time is cut into spans by \
its bits, which costs less than days do by divisions; what is left is Spark's hashing."""
_TWO_CORES = """\
Two cores: what Java compiles and collects beside the work has a core to itself where the work has one, and \
none where it has two; and cores of a virtual machine may be one core's threads."""
_INGEST = """\
Ingest: it is bound by the processor, {cpu_seconds:.0f} CPU seconds on cores that it shares with the Kafka \
broker of the test. Most of it is reading JSON, which is done once for all tables; more cores would help."""
_INTERVAL = """\
Forecast: the interval is wider than it says. It is made of what each disk did on its own days, which are \
few; it errs on the side of a warning that comes early."""


def causes(profile: Profile, saved: Sequence[Saved], verdicts: Sequence[Verdict]) -> list[str]:
    """Return a text for each kind of aim that is missed."""
    missed = [verdict.aim for verdict in verdicts if not verdict.holds and not verdict.must]
    slow = [aim for aim in missed if "two cores" not in aim]
    ingest = next((step.ingest for step in saved if step.ingest is not None), {})
    kinds = (
        (any(aim.startswith(REPLAY) for aim in slow), _replay(profile, saved)),
        (any(aim.startswith(REGRESSION) for aim in slow), _REGRESSION),
        (len(slow) < len(missed), _TWO_CORES),
        (any(aim.startswith("ingest") for aim in slow), _INGEST.format_map({"cpu_seconds": 0.0, **ingest})),
        (any(aim.startswith("forecast: the interval") for aim in slow), _INTERVAL),
    )
    return [text for is_missed, text in kinds if is_missed]


def _replay(profile: Profile, saved: Sequence[Saved]) -> str:
    figures: Mapping[str, Figure] = {
        figure.work: figure
        for step in saved
        for figure in step.figures
        if (figure.engine, figure.cores, figure.days) == ("spark", 2, profile.days)
    }
    if not {REPLAY, READING, CHOOSING, ONE_CLUSTER} <= set(figures):
        return _HASHING
    whole, reading, chosen, one = (figures[w].cpu for w in (REPLAY, READING, CHOOSING, ONE_CLUSTER))
    parts = (
        f"{reading:.1f} are reading",
        f"{max(chosen - reading, 0):.1f} comparing role and status",
        f"{max(one - chosen, 0):.1f} grouping by tick, and {max(whole - one, 0):.1f} the name",
    )
    speed = figures[ONE_CLUSTER].rows / one / 1e6
    return (
        f"{_HASHING} Of {whole:.1f} CPU seconds {', '.join(parts)}; "
        f"without it, {speed:.1f} M samples per CPU second."
    )
