"""Volumes that go on filling while producers are paused: by replication, which nothing here stops."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kquota.disks.observation import VolumeObservation
from kquota.disks.topic_growth import TopicGrowth, TopicGrowthQuestion
from kquota.guard.applied_state import AppliedState
from kquota.guard.report import CycleReport
from kquota.journal.active_problems import ActiveProblem
from kquota.journal.journal import MessageId
from kquota.policy.decision import Mode, State
from kquota.policy.volume import VolumeRole, VolumeStatus

# Requests in flight of producers, and the leak of a pause, come first and are no news.
SETTLE_SECONDS = 20.0
WINDOW_SECONDS = 60.0
# Topics that grew earlier may have been throttled or cancelled since; a look costs seconds of a disk.
ASK_AGAIN_SECONDS = 600.0
_LEAST_SPAN_SECONDS = 10.0
_SAMPLE_SECONDS = 2.0
MIN_GROWTH_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class _Watched:
    samples: deque[tuple[float, int]] = field(default_factory=deque)
    growing: bool = False
    question: TopicGrowthQuestion | None = None
    topics: TopicGrowth | None = None
    due_seconds: float = 0.0

    def ask(self, log_dirs: Iterable[str], now: float) -> None:
        """Ask which topics grow, now and then, or take the answer; the one before counts until then."""
        if self.question is not None:
            if (answer := self.question.answer()) is not None:
                self.question, self.topics = None, answer
        elif self.topics is None or now >= self.due_seconds:
            self.due_seconds = now + ASK_AGAIN_SECONDS
            try:
                self.question = TopicGrowthQuestion(log_dirs)
            except OSError as error:
                self.topics = TopicGrowth(problem=f"no process can be started: {error.strerror}")

    def forget(self) -> None:
        """Ask no more."""
        if self.question is not None:
            self.question.close()
        self.question = self.topics = None


@dataclass(slots=True)
class PauseGrowth:
    """Follows this broker's volumes through a PAUSE that is enforced; ``growing`` names those that grow."""

    broker_id: int
    growing: frozenset[str] = frozenset()
    _paused_since_seconds: float | None = None
    _volumes: dict[str, _Watched] = field(default_factory=dict)

    def follow(self, report: CycleReport) -> Iterator[ActiveProblem]:
        """Yield a problem for each volume that grows."""
        now, self.growing = report.moment.monotonic_seconds, frozenset()
        if not _paused(report):
            self.close()
            return
        if self._paused_since_seconds is None:
            self._paused_since_seconds = now
        if now - self._paused_since_seconds < SETTLE_SECONDS:
            return
        for volume in report.observation.volumes:
            is_in_use = volume.role is VolumeRole.DATA and volume.status is VolumeStatus.OK
            if is_in_use and volume.consumed_bytes is not None:
                sentence = self._judge(volume, volume.consumed_bytes, now)
                if sentence is not None:
                    kind = "replication" if self._volumes[volume.name].topics is None else "topics"
                    subject = f"growth of {volume.name}"
                    self.growing |= {volume.name}
                    yield ActiveProblem(MessageId.GROWING_IN_PAUSE, subject, kind, sentence)

    def close(self) -> None:
        """Forget the observations, and ask no more."""
        for watched in self._volumes.values():
            watched.forget()
        self._volumes.clear()
        self._paused_since_seconds = None

    def _judge(self, volume: VolumeObservation, consumed_bytes: int, now: float) -> str | None:
        watched = self._volumes.setdefault(volume.name, _Watched())
        samples = watched.samples
        if not samples or now - samples[-1][0] >= _SAMPLE_SECONDS:
            samples.append((now, consumed_bytes))
        while now - samples[0][0] > WINDOW_SECONDS:
            samples.popleft()
        span_seconds, grown_bytes = now - samples[0][0], consumed_bytes - samples[0][1]
        least_bytes = MIN_GROWTH_BYTES / 2 if watched.growing else MIN_GROWTH_BYTES
        # With too few observations, as after a time without any, there is no rate.
        watched.growing = span_seconds >= _LEAST_SPAN_SECONDS and grown_bytes >= least_bytes
        if not watched.growing:
            watched.forget()
            return None
        watched.ask(volume.log_dirs, now)
        rate = grown_bytes / span_seconds
        left_bytes = (volume.capacity_bytes or 0) - consumed_bytes
        topics = "its topics are being looked at" if watched.topics is None else str(watched.topics)
        return (
            f"volume {volume.name} of broker {self.broker_id} goes on growing in PAUSE,"
            f" by {rate / 1e6:.1f} MB/s: full in {left_bytes / rate / 3600:.1f} h at that rate;"
            f" {topics}; throttle or cancel the reassignment or replication behind it"
        )


def _paused(report: CycleReport) -> bool:
    decision = report.decision
    if decision is None or decision.state is not State.PAUSE or report.enforcement.mode is not Mode.ENFORCE:
        return False
    # A broker whose glass is broken holds no producer: its growth comes from producers.
    return not (isinstance(report.applied, AppliedState) and report.applied.mode is Mode.OBSERVE)
