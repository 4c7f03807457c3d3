"""Signed records at the agent's edges: its own signature, and whose signatures count.

The algorithms take ten megabytes of memory: they are imported only where records are signed or verified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kquota.formats.record_verifier import RecordVerifier, ReplayGuard
from kquota.formats.records import TopicKind
from kquota.formats.sentences import authority_end_sentence, revoked_sentence
from kquota.formats.signature_headers import (
    REPORTS_TOLERANCE_MS,
    SignatureHeaders,
    SigningMode,
    next_counter,
    order_name_wanted,
    signed_bytes,
    writer_of,
)
from kquota.journal.active_problems import ActiveProblem
from kquota.journal.journal import MessageId
from kquota.kafka.delivery import Headers
from kquota.kafka.misplaced import partition_of
from kquota.settings import Settings, SettingsError

if TYPE_CHECKING:
    from kquota.trust.live_file import FileProblem
    from kquota.trust.signer import FileSigner

# The state file is written once for this many counters, about as often as that many milliseconds pass.
_RESERVED_COUNTERS = 600_000
# Those of an agent that has begun above the clock grow by one with each record. With so few it is soon at the
# clock again, however often it starts: readers refuse what is far ahead.
_RESERVED_AHEAD = 1_000
_AUTHORITY_ENDS_SOON = timedelta(days=30)


def verifier_of(settings: Settings, counters: ReplayGuard | None = None) -> RecordVerifier | None:
    """Return who judges the usage topic's records by their signatures; None where no signature is looked at.

    Raises:
        SettingsError: the authorities can't be read.
    """
    if settings.signing.mode is SigningMode.OFF:
        return None
    from kquota.trust.authorities import AuthorityFile  # noqa: PLC0415 - see above
    from kquota.trust.live_file import FileProblem  # noqa: PLC0415

    path, revoked = settings.signing_file("ca_file"), settings.signing.revoked_file
    assert path is not None, "checked with the settings"
    try:
        authorities = AuthorityFile(path, revoked=revoked)
    except FileProblem as found:
        where = "revoked_file" if found.file == revoked else "ca_file"
        raise _refused(settings, where, found) from None
    return RecordVerifier(settings.signing.mode, settings.topics.usage.name, authorities, counters)


def signer_of(settings: Settings, broker_id: int | None) -> FileSigner | None:
    """Return the owner of the configured key; None where records are not signed.

    Raises:
        SettingsError: key and certificate can't be used, or are not those of this broker's agent. Without a
            broker they may be anybody's.
    """
    if settings.signing.mode is SigningMode.OFF:
        return None
    from kquota.trust.live_file import FileProblem  # noqa: PLC0415 - see above
    from kquota.trust.signer import FileSigner, SigningFiles  # noqa: PLC0415

    keys = ("certificate_file", "key_file", "ca_file")
    paths = [settings.signing_file(key) for key in keys]
    certificate, key, authorities = [path for path in paths if path is not None]
    password = settings.librdkafka().get("ssl.key.password")
    try:
        return FileSigner(SigningFiles(certificate, key, authorities, password), broker_id)
    except FileProblem as found:
        raise _refused(settings, "key_file" if found.file == key else "certificate_file", found) from None


def _refused(settings: Settings, key: str, found: FileProblem) -> SettingsError:
    wrong = f"names {found.file}, which {found.wrong}"
    return SettingsError([settings.problem(("signing", key), wrong, found.allowed)])


def counter_to_remember(remembered: int, last: int, now_ms: int) -> int:
    """Return a bound above the counter of the record signed last: the remembered one where that will do."""
    enough = max(last + _RESERVED_AHEAD // 2, now_ms + _RESERVED_COUNTERS // 2)
    if enough < remembered <= now_ms + REPORTS_TOLERANCE_MS:
        return remembered
    return max(last + _RESERVED_AHEAD, now_ms + _RESERVED_COUNTERS)


class RecordSigner:
    """Signs the records of one writer. ``last`` is the counter of its last record, or more."""

    def __init__(
        self,
        signer: FileSigner,
        topic: str,
        counters: ReplayGuard,
        last: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Sign with this signer; ``counters`` are those that were read from the topic."""
        self.signer = signer
        self._topic, self._counters, self.last, self._clock = topic, counters, last, clock

    def headers(self, key: bytes, value: bytes | None, cluster_id: str, partitions: int) -> Headers:
        """Return the headers that sign a record, for the partition that Kafka's partitioner gives it."""
        self.signer.refresh()
        self.last = next_counter(self.last, self._counters.highest(key), round(self._clock() * 1000))
        place, certificate = (cluster_id, self._topic, partition_of(key, partitions)), self.signer.certificate
        message = signed_bytes(*place, key, value, self.last, certificate)
        return SignatureHeaders(self.signer.sign(message), certificate, self.last).to_headers()


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """How the certificate that signs our records is, and the files by which others judge it.

    ``authority_end`` is when its authority ends, None where that is not known.
    """

    fingerprint: str
    revoked: bool
    authority_end: datetime | None
    file_problems: tuple[str, ...]

    def problems(self, now: datetime) -> Iterator[str]:
        """Yield what is wrong: that it is revoked, with the files, and that its authority ends soon."""
        if self.revoked:
            yield revoked_sentence(self.fingerprint)
        yield from self.file_problems
        if self.authority_end is not None and self.authority_end - now < _AUTHORITY_ENDS_SOON:
            yield authority_end_sentence(self.authority_end)


def own_certificate(
    record_signer: RecordSigner | None, verifier: RecordVerifier | None
) -> OwnCertificate | None:
    """Return how the certificate that signs our records is; None where none is needed."""
    if record_signer is None or verifier is None:
        return None
    return _judged(verifier, record_signer.signer.certificate, record_signer.signer.fingerprint)


def _judged(verifier: RecordVerifier, certificate: bytes, fingerprint: str) -> OwnCertificate:
    authorities = verifier.authorities
    revoked, end = fingerprint in authorities.revoked(), authorities.authority_end(certificate)
    return OwnCertificate(fingerprint, revoked, end, tuple(authorities.problems))


def signer_problems(
    record_signer: RecordSigner | None, own: OwnCertificate | None, now: datetime
) -> Iterator[ActiveProblem]:
    """Yield what is wrong with the files of signatures, and with the own certificate."""
    if record_signer is None or own is None:
        return
    for sentence in (record_signer.signer.problem, *own.problems(now)):
        if sentence is not None:
            yield ActiveProblem(MessageId.CONFIGURATION_WARNING, f"signing: {sentence}", "", sentence)


def signing_problems(settings: Settings, verifier: RecordVerifier | None, now: datetime) -> Iterator[str]:
    """Yield the same for people without an agent, who may not be able to read its certificate."""
    file = settings.signing_file("certificate_file")
    if verifier is None or file is None:
        return
    from kquota.trust.signer import certificate_in  # noqa: PLC0415 - see above

    yield from _judged(verifier, *certificate_in(file)).problems(now)


class OrderNotSigned(Exception):
    """An order that readers would not take from this signer; the text says what is wanted."""


@dataclass(frozen=True, slots=True)
class OperatorFiles:
    """The certificate and the key by which an operator signs, and the key's password."""

    certificate: Path
    key: Path
    password: str | None = None


class OrderSigner:
    """Signs one order; where signatures are not required, one that it can't sign is sent unsigned.

    ``warning`` says so.
    """

    def __init__(
        self, settings: Settings, files: OperatorFiles | None, source: Path, key: bytes, value: bytes | None
    ) -> None:
        """Take the operator's files; ``source`` is the file that names them."""
        self.warning: str | None = None
        self._settings, self._files, self._source = settings, files, source
        self._key, self._value = key, value

    def headers(self, cluster_id: str | None, partitions: int) -> Headers:
        """Return the headers that sign the order; none where it can't be signed, and need not be.

        Raises:
            OrderNotSigned: there is no certificate of an operator that can be used, and readers require one.
        """
        signer = self._signer(cluster_id)
        if isinstance(signer, str):
            if self._settings.signing.mode is SigningMode.REQUIRED:
                raise OrderNotSigned(signer)
            self.warning = f"the order is not signed: {signer}"
            return ()
        record_signer = RecordSigner(signer, self._settings.topics.orders.name, ReplayGuard())
        return record_signer.headers(self._key, self._value, cluster_id or "", partitions)

    def _signer(self, cluster_id: str | None) -> FileSigner | str:
        """Return who signs, or what is wanted."""
        from kquota.trust.live_file import FileProblem  # noqa: PLC0415 - see above
        from kquota.trust.signer import FileSigner, SigningFiles  # noqa: PLC0415

        wanted = (
            f"name a certificate for {order_name_wanted(cluster_id)} and its key in {self._source}, by"
            " kquota.signing.certificate and kquota.signing.key"
        )
        authorities = self._settings.signing_file("ca_file")
        if self._files is None or authorities is None:
            return f"an order needs an operator's signature: {wanted}"
        certificate, key, password = self._files.certificate, self._files.key, self._files.password
        try:
            signer = FileSigner(SigningFiles(certificate, key, authorities, password))
        except FileProblem as problem:
            return f"{self._source} names {problem}"
        tombstone, topic = self._value is None, TopicKind.ORDERS
        if writer_of(signer.names, cluster_id or "", self._key, tombstone=tombstone, topic=topic) is None:
            names = ", ".join(signer.names) or "no kquota:// URI"
            return f"{certificate} names {names}, which gives no orders: {wanted}"
        return self._revoked(signer, wanted) or signer

    def _revoked(self, signer: FileSigner, wanted: str) -> str | None:
        from kquota.trust.live_file import FileProblem  # noqa: PLC0415 - see above
        from kquota.trust.revoked import revoked_in  # noqa: PLC0415

        listed = self._settings.signing.revoked_file
        try:
            if listed is None or signer.fingerprint not in revoked_in(listed).content():
                return None
        except FileProblem as problem:
            return f"signing.revoked_file names {problem}"
        return f"{self._source} names a certificate that {listed} revokes ({signer.fingerprint}): {wanted}"


def signing_warnings(settings: Settings, broker_id: int, now: datetime) -> tuple[str, ...]:
    """Return why readers with the same authorities would refuse the records of this broker's agent.

    Raises:
        SettingsError: key and certificate can't be used at all.
    """
    signer = signer_of(settings, broker_id)
    doubt = None if signer is None else signer.doubt(now)
    return () if doubt is None else (doubt,)
