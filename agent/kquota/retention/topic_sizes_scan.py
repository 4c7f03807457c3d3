"""Looking at what is on this broker's volumes, rarely: topics, and when their bytes leave by themselves.

Source: docs/adr/0027-expiry.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kquota.disks.observation import VolumeObservation
from kquota.disks.segment_scan import SegmentLook
from kquota.disks.segments import BrokerRules, InvalidTopicSettings, TopicRules, topic_rules
from kquota.disks.server_properties import BrokerProperties
from kquota.guard.decision_file import DecisionFile
from kquota.guard.report import CycleReport
from kquota.journal.journal import Entry
from kquota.kafka.admin import AdminConnection
from kquota.kafka.errors import KafkaFailure
from kquota.kafka.threads import Watch, going_on
from kquota.policy.volume import VolumeRole
from kquota.retention.topic_sizes import FILE_NAME, Contents, ContentsCount, contents_document, sizes_before
from kquota.settings.model import SegmentsSection

# Kafka's defaults of two broker properties that only a restart changes.
CHECK_INTERVAL_MS = 300_000
_CHECK_INTERVAL = "log.retention.check.interval.ms"
_REMOTE_STORAGE = "remote.log.storage.system.enable"
# The agent's first decision, and the broker's, come first.
FIRST_SECONDS = 10.0
_TOPICS_A_QUESTION = 100
_PAUSE_SECONDS = 1.0

_LOG = logging.getLogger(__name__)


class ContentsWatch(Watch):
    """Looks in a thread of its own, which begins when the volumes are known."""

    def __init__(
        self,
        admin: AdminConnection,
        settings: SegmentsSection,
        properties: BrokerProperties,
        decision_file: Path,
    ) -> None:
        """Write the segments file next to the decision file.

        Raises:
            OSError: the leftovers of an earlier writer can't be removed.
        """
        self._admin = admin
        self._settings = settings
        self._broker_rules = broker_rules_of(properties)
        self._has_remote_storage = _text(properties, _REMOTE_STORAGE).lower() == "true"
        self._file = DecisionFile(decision_file.with_name(FILE_NAME), "list of segments")
        self._volumes: tuple[VolumeObservation, ...] = ()
        self._looked_at_seconds: float | None = None
        self._unseen: Contents | None = None
        self.contents: Contents | None = None
        super().__init__("kquota-segments")

    def follow(self, report: CycleReport) -> Iterable[Entry]:
        """Look at the volumes of this cycle from now on."""
        volumes = report.observation.volumes
        self._volumes = tuple(one for one in volumes if one.role is VolumeRole.DATA and not one.is_unknown)
        if self._volumes and self._settings.interval_seconds and self._thread.ident is None:
            self.start()
        return ()

    def take_unseen(self) -> Contents | None:
        """Return the outcome of a look, once."""
        found, self._unseen = self._unseen, None
        return found

    def _run(self) -> None:
        self._stop.wait(min(FIRST_SECONDS, self._settings.interval_seconds))
        while not self._stop.is_set():
            begun = time.monotonic()
            with going_on("looking at the segments"):
                self._look()
            self._stop.wait(max(self._settings.interval_seconds - (time.monotonic() - begun), _PAUSE_SECONDS))

    def _look(self) -> None:
        volumes, count, notes = self._volumes, ContentsCount(self._broker_rules), list[str]()
        log_dirs = [log_dir for volume in volumes for log_dir in volume.log_dirs]
        rules: Mapping[str, TopicRules] | None = None
        try:
            look = SegmentLook(
                log_dirs, files_per_second=self._settings.files_per_second, is_over=self._stop.is_set
            )
        except OSError as error:
            self._finish((), [f"no process can be started to look at the segments: {error.strerror}"])
            return
        with look:
            for partition in look.partitions():
                if rules is None:
                    rules = self._rules(look.topics, notes)
                count.add(partition, rules.get(partition.topic), time.time_ns() // 1_000_000)
        if self._stop.is_set():
            return
        if look.problem is not None:
            self._finish((), [look.problem])
            return
        if look.unreadable_indexes:
            notes.append(
                f"{look.unreadable_indexes:,} time indexes can't be read by the agent's user: the time of the"
                " last change of these segments stands for their largest timestamp"
            )
        self._finish(volumes, notes, count)

    def _finish(
        self, volumes: Sequence[VolumeObservation], notes: Sequence[str], count: ContentsCount | None = None
    ) -> None:
        """Pass the outcome on: to the cycle, and to the command line by the file."""
        now, before = time.monotonic(), self.contents
        span = None if self._looked_at_seconds is None else now - self._looked_at_seconds
        found = Contents(
            datetime.now(UTC),
            span,
            ()
            if count is None
            else tuple(
                count.volume(one.name, one.volume_id, one.log_dirs, sizes_before(before, one.volume_id))
                for one in volumes
            ),
            tuple(notes),
        )
        if count is not None:
            self._looked_at_seconds, self.contents = now, found
        self._unseen = found
        try:
            self._file.write(contents_document(found))
        except (OSError, ValueError) as error:
            _LOG.warning("the segments file %s can't be written: %s", self._file.path, error)

    def _rules(self, topics: Sequence[str], notes: list[str]) -> Mapping[str, TopicRules]:
        """Ask for the settings of topics; note why those of some are not known."""
        rules: dict[str, TopicRules] = {}
        same: dict[TopicRules, TopicRules] = {}
        why = "they are not there any more, or the agent's principal may not see their settings"
        for asked in _portions(topics):
            found = self._admin.settings_of_topics(asked).result()
            if isinstance(found, KafkaFailure):
                why = found.sentence
                continue
            for topic, settings in found.items():
                try:
                    known = topic_rules(settings, broker_has_remote_storage=self._has_remote_storage)
                except InvalidTopicSettings as error:
                    why = f"{topic}: {error}"
                else:
                    rules[topic] = same.setdefault(known, known)
        if unknown := len(topics) - len(rules):
            notes.append(f"it is not known when the bytes of {unknown:,} topics leave: {why}")
        return rules


def broker_rules_of(properties: BrokerProperties) -> BrokerRules:
    """Return how often a broker looks for segments to delete, by its configuration."""
    text = _text(properties, _CHECK_INTERVAL)
    return BrokerRules(int(text) if text.isdecimal() else CHECK_INTERVAL_MS)


def _text(properties: BrokerProperties, key: str) -> str:
    return properties.raw.get(key, "").strip()


def _portions(topics: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(topics), _TOPICS_A_QUESTION):
        yield topics[start : start + _TOPICS_A_QUESTION]
