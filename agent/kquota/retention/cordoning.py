"""Cordoning the log dirs of full volumes on this broker, through its dynamic setting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from queue import SimpleQueue

from kquota.guard.report import CycleReport
from kquota.journal.active_problems import ActiveProblem
from kquota.journal.journal import Entry, MessageId
from kquota.kafka.admin import AdminConnection
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.threads import Watch, going_on
from kquota.policy.cordon import SETTING, Change, Cordon, change, log_dirs_to_cordon

# A value that an operator, or a broker's new registration, has replaced is noticed after this long.
LOOK_AGAIN_SECONDS = 60.0
RETRY_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_REMEMBER_SECONDS = 5.0
_INVALID = "INVALID_CONFIG"

_SUBJECT = "cordoned log dirs"


class LogDirCordon(Watch):
    """Keeps the setting in a thread of its own, which begins when there is something to cordon or to end.

    The log dirs that become ours are remembered on disk before the setting is changed: after a crash between
    both, none is left behind.
    """

    def __init__(
        self,
        admin: AdminConnection,
        broker_id: int,
        since: Cordon,
        ours: Iterable[str],
        *,
        release_margin: Fraction,
        settle: Callable[[float], bool],
        remember: Callable[[frozenset[str]], None],
    ) -> None:
        """`ours` are the log dirs remembered as cordoned; `settle` waits until what was handed to `remember`
        is on disk, or returns False after that many seconds.
        """
        self._admin, self._broker_id, self._since = admin, broker_id, since
        self._release_margin = release_margin
        self._settle, self._hand_over = settle, remember
        self.ours = frozenset(ours)
        self._wanted = self.ours
        self._to_remember: frozenset[str] | None = None
        self._remembered = threading.Event()
        self._due_seconds = 0.0
        self._done: tuple[frozenset[str], frozenset[str]] | None = None
        self._entries: SimpleQueue[Entry] = SimpleQueue()
        self._trouble: ActiveProblem | None = None
        super().__init__("kquota-cordon")

    def follow(self, report: CycleReport) -> Iterator[ActiveProblem | Entry]:
        """Yield why a log dir is not cordoned that should be, and what has happened since the last cycle."""
        volumes = () if report.own is None else report.own.volumes
        self._wanted = log_dirs_to_cordon(volumes, self._since, self._wanted, self._release_margin)
        if (ours := self._to_remember) is not None:
            self._to_remember = None
            self._hand_over(ours)
            self._remembered.set()
        if (self._wanted or self.ours) and self._thread.ident is None:
            self.start()
        if self._trouble is not None:
            yield self._trouble
        yield from [self._entries.get_nowait() for _ in range(self._entries.qsize())]

    def _run(self) -> None:
        while not self._stop.is_set():
            with going_on("cordoning log dirs"):
                wanted, now_seconds = self._wanted, time.monotonic()
                state = wanted, self.ours
                has_work = bool(wanted or self.ours)
                if has_work and (state != self._done or now_seconds >= self._due_seconds):
                    self._trouble = self._look(wanted)
                    self._done = wanted, self.ours
                    wait_seconds = LOOK_AGAIN_SECONDS if self._trouble is None else RETRY_SECONDS
                    self._due_seconds = time.monotonic() + wait_seconds
                elif not has_work:
                    self._trouble = None
            self._stop.wait(_LOOK_SECONDS)

    def _look(self, wanted: frozenset[str]) -> ActiveProblem | None:
        settings = self._admin.broker_settings(self._broker_id).result()
        if isinstance(settings, KafkaFailure):
            return _trouble(wanted, settings.kind, settings.sentence)
        if SETTING not in settings:
            self._remember(frozenset())
            return _trouble(
                wanted,
                "version",
                f"broker {self._broker_id} has no setting {SETTING}, which Kafka has since 4.3: upgrade"
                " Kafka, or set cordon: off",
            )
        present = [one for one in settings[SETTING].split(",") if one]
        found = change(present, self.ours, wanted)
        return None if found is None else self._make(found, present)

    def _make(self, found: Change, present: Sequence[str]) -> ActiveProblem | None:
        """Make a change; the log dirs are remembered as ours before, and forgotten after it."""
        before = self.ours
        if not found.ours <= before and not self._remember(before | found.ours):
            return _trouble(found.ours, "memory", "the state file can't be written, see there")
        if tuple(present) != found.value:
            failure = self._admin.set_broker_setting(
                self._broker_id, SETTING, ",".join(found.value) or None
            ).result()
            if isinstance(failure, KafkaFailure):
                why = failure.sentence
                if failure.code == _INVALID:
                    why = f"{failure.detail} (it needs metadata version 4.3-IV0: kafka-features.sh describe)"
                return _trouble(found.ours, failure.kind, why)
        self._remember(found.ours)
        for log_dir in sorted(found.ours - before):
            self._note(
                f"Kafka places no new partition in {log_dir}: its volume is over its {self._since} limit"
            )
        for log_dir in sorted(before - found.ours):
            self._note(f"Kafka may place new partitions in {log_dir} again")
        return None

    def _remember(self, ours: frozenset[str]) -> bool:
        """Have the log dirs of ours on disk; return whether they are there in time."""
        self.ours = ours
        self._remembered.clear()
        self._to_remember = ours
        return self._remembered.wait(_REMEMBER_SECONDS) and self._settle(_REMEMBER_SECONDS)

    def _note(self, sentence: str) -> None:
        self._entries.put(Entry.of(MessageId.LOG_DIR_CORDONED, sentence))


def _trouble(log_dirs: Iterable[str], kind: str, why: str) -> ActiveProblem:
    named = ", ".join(sorted(log_dirs)) or "some log dirs"
    sentence = f"the cordon of {named} can't be changed: {why}"
    return ActiveProblem(MessageId.LOG_DIR_CORDONED, _SUBJECT, kind, sentence)
