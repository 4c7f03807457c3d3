"""The journal: the agent's messages to people, one sentence an entry, never a secret.

Under systemd entries go to journald with fields of their own (KQUOTA_BROKER_ID, KQUOTA_STATE,
KQUOTA_FACTOR, KQUOTA_REASON) and a stable MESSAGE_ID, which ``packaging/kquota.catalog`` explains;
elsewhere to standard error, with a timestamp.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TextIO

from kquota.settings.problems import REDACTED

try:
    from systemd.journal import JournalHandler
except ModuleNotFoundError:  # of the extra agent; without it journald still reads standard error
    JournalHandler = None

_log = logging.getLogger("kquota")
# Replacing shorter ones would riddle sentences with holes and protect nothing.
_MIN_SECRET_LENGTH = 4


class MessageId(StrEnum):
    """Kinds of entries. An id never changes its meaning and is never used for another one.

    The ``level`` is that of the kind; only changes of state and mode have one of their own.
    """

    STARTED = "359ee44feaa54734a22f8d34dbef5d2b"
    STOPPING = "9a0f0a88627c4a7eb71d8ff4f71e6320"
    CYCLE = "953ffc8b762e4b9c88884a896de63a62"
    STATE_CHANGED = "017f110cb728485bbc24539a8e832ddc"
    UNDETERMINED = "629b460032824cdf92bc2db68a8e42f0"
    MODE_CHANGED = "37a00368bf654697be06c7dd2e60571f"
    DECISION_NOT_WRITTEN = "3c2e41a2eacc4b2cafd77690f23fc679"
    TOPIC_REFUSED = "ea05098a10f64f769c304dc14105ac30"
    RECORD_MALFORMED = "ef9cebed7abd4f699bf1a5a058b72f59"
    RECORD_REFUSED = "6b6dc72c04da455c8c8b4f2f2f05c39e"
    RIVAL_AGENT = "74600b54e9534e5590199bde3aad4355"
    VOLUME_TROUBLE = "839dd71a9b134f51b1a8f803bd1915a4"
    APPLIED_UNKNOWN = "7f4c146842a7437d822bf23b41641d5c"
    KAFKA_TROUBLE = "ef033d395c2a41c7918632adda65cbb0"
    PUBLISH_FAILED = "473d30f6eeef4f64b23f956991dc2ba7"
    OPERATOR_ORDER = "4f9caf5cf90543b2af6044a62d8a64b9"
    BROKER_DECOMMISSIONED = "dd5607a8193b4b158a0484c27e002cfd"
    CONFIGURATION_REFUSED = "92fad05fd1c54c538ee7699a447d144d"
    CONFIGURATION_LOADED = "cc59cba4645247b3b2845eb61a6645b5"
    CONFIGURATION_WARNING = "71d41a92891342cb99b86ee30c9b2cd2"
    CLOCK_JUMPED = "b625c77d754348c480a2bb638190be37"
    STATE_FILE_BROKEN = "5c823913b7dd4c51b9236a89caad502f"
    GROWING_IN_PAUSE = "a1a404cd3dee42d2b464dee73118652a"
    LOG_DIR_CORDONED = "21bbaedcdc2844fbb74e822fff5ad526"
    PRODUCERS_STARVE = "c1f3a2d08d9b4e6fb1a57c3c5b0e94d7"
    CYCLE_FAILED = "0bd6e1a02f5f41c2a34605262c761b06"

    @property
    def level(self) -> int:
        """Return a level of ``logging``."""
        return _LEVELS.get(self, logging.WARNING)


_LEVELS = {
    MessageId.CYCLE: logging.DEBUG,
    MessageId.STARTED: logging.INFO,
    MessageId.STOPPING: logging.INFO,
    MessageId.CONFIGURATION_LOADED: logging.INFO,
    MessageId.APPLIED_UNKNOWN: logging.INFO,
    MessageId.CONFIGURATION_REFUSED: logging.ERROR,
    MessageId.CYCLE_FAILED: logging.ERROR,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a level of ``logging``, one sentence, its kind, and journal fields (KQUOTA_…)."""

    level: int
    sentence: str
    message_id: MessageId
    fields: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(message_id: MessageId, sentence: str) -> Entry:
        """Return an entry at the level of its kind."""
        return Entry(message_id.level, sentence, message_id)


class Journal:
    """Takes over the process's logging until it is closed; whatever any library logs goes the same way."""

    def __init__(self, environ: Mapping[str, str], level: str = "INFO", stream: TextIO | None = None) -> None:
        """Log to journald where ``stream`` (default: standard error) leads there, else to the stream."""
        stream = stream or sys.stderr
        self.to_journald = JournalHandler is not None and _is_journal(stream, environ)
        self._annotations = _Annotations()
        self._handler: logging.Handler
        if self.to_journald:
            self._handler = JournalHandler(SYSLOG_IDENTIFIER="kquota")
        else:
            self._handler = logging.StreamHandler(stream)
            self._handler.setFormatter(_Line("%(asctime)s %(levelname)s %(message)s"))
        self._handler.addFilter(self._annotations)
        logging.getLogger().addHandler(self._handler)
        self.configure(level)

    def configure(self, level: str, *, broker_id: int | None = None, secrets: Iterable[str] = ()) -> None:
        """Set the level of the log, its broker, and the texts that never appear in it."""
        _log.setLevel(level)
        self._annotations.broker_id = broker_id
        self._annotations.secrets = tuple(
            sorted((secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH), key=len, reverse=True)
        )

    def write(self, entries: Iterable[Entry]) -> None:
        """Write entries in their order."""
        for entry in entries:
            _log.log(
                entry.level, "%s", entry.sentence, extra={"MESSAGE_ID": str(entry.message_id), **entry.fields}
            )

    def close(self) -> None:
        """Give logging back as it was found."""
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()


class _Annotations(logging.Filter):
    """Adds what every entry carries, and takes out what none may."""

    def __init__(self) -> None:
        super().__init__()
        self.broker_id: int | None = None
        self.secrets: tuple[str, ...] = ()

    def filter(self, record: logging.LogRecord) -> bool:
        if self.broker_id is not None:
            record.KQUOTA_BROKER_ID = str(self.broker_id)
        # one sentence is one line; the arguments go, since the handler sends them as a field of their own
        record.msg, record.args = self._clean(" ".join(record.getMessage().split())), None
        if record.exc_info:
            record.exc_text = self._clean(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        for name, value in vars(record).items():
            if name.startswith("KQUOTA_"):
                setattr(record, name, self._clean(str(value)))
        return True

    def _clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return text


class _Line(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        moment = datetime.fromtimestamp(record.created, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether the stream is the socket that systemd announces: JOURNAL_STREAM may be inherited."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
