"""Building librdkafka clients, listening to their errors, and building them again when their credentials are
rotated.
"""

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kquota.kafka.config import ClientProperties, ConfigurationError, Role
from kquota.kafka.credentials import FILE_PROPERTIES, ClientCertificate, CredentialFiles
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify, plain_text, refusal_at_first_request

_LIBRDKAFKA = logging.getLogger("kquota.kafka.librdkafka")

CREDENTIALS_LOOK_SECONDS = 1.0
"""How often a client in use looks whether its credential files were replaced."""

CREDENTIALS_RETRY_SECONDS = 5.0
"""How often credential files that cannot be used are tried again, though they look the same."""

AGAIN_SECONDS = 1.0
"""How often the same failure of a connection to a broker is handed over while it lasts."""

_RECENT_SECONDS = 15.0
_KINDS_WITH_A_CAUSE_BEHIND = frozenset({Kind.TIMEOUT, Kind.UNREACHABLE, Kind.OTHER})

_FILE_PROPERTY_IN_TEXT = re.compile(rf"(?:{'|'.join(map(re.escape, FILE_PROPERTIES))})(?!\w)")

C = TypeVar("C")


class _QuietLog:
    """librdkafka's log lines as debug records: the important ones arrive again as errors, classified.

    All but one: the line of a listener that ends each connection at the first request.
    """

    def __init__(self, note: Callable[[KafkaFailure], None]) -> None:
        self._note = note

    def log(self, _level: int, message: str, *arguments: object) -> None:
        _LIBRDKAFKA.debug(message, *arguments)
        failure = refusal_at_first_request(message % arguments if arguments else message)
        if failure is not None:
            self._note(failure)


class ErrorWatch:
    """The errors a client meets outside of any request (its `error_cb`), and the cause behind requests that
    time out.

    A request on a connection that cannot be had only times out; the cause is reported
    here. Safe to use from several threads. `all_brokers_down` is whether librdkafka has lost every broker
    since the last answer.
    """

    def __init__(
        self,
        certificate: Callable[[], ClientCertificate | None] = lambda: None,
        on_failure: Callable[[KafkaFailure], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._certificate = certificate
        self._on_failure = on_failure
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: tuple[float, KafkaFailure] | None = None
        self.all_brokers_down = False
        self._handed_over: dict[tuple[Kind, str | None, bool], float] = {}

    def on_error(self, error: KafkaError) -> None:
        """librdkafka's `error_cb`."""
        failure = classify(error, certificate=self._certificate())
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            with self._lock:
                self.all_brokers_down = True
                # The broker and the cause were reported just before.
                failure = self._connection[1] if self._connection is not None else failure
        else:
            self.note(failure)
        # A message about a topic here also reaches the user of the topic.
        worth_telling = failure.is_connection or failure.is_want_of_resources
        if self._on_failure is not None and worth_telling and self._is_news(failure):
            self._on_failure(failure)

    def _is_news(self, failure: KafkaFailure) -> bool:
        """Whether to hand over a failure: every attempt at a connection fails, some ten times a second."""
        now = self._clock()
        with self._lock:
            what = (failure.kind, failure.broker, self.all_brokers_down)
            if now - self._handed_over.get(what, -AGAIN_SECONDS) < AGAIN_SECONDS:
                return False
            self._handed_over[what] = now
            return True

    def note(self, failure: KafkaFailure) -> None:
        """Remember a failure of the connection."""
        if failure.is_connection:
            with self._lock:
                self._connection = (self._clock(), failure)

    def contact(self) -> None:
        """The cluster has answered: earlier failures explain nothing any more."""
        with self._lock:
            self._connection = None
            self.all_brokers_down = False

    def explain(self, failure: KafkaFailure) -> KafkaFailure:
        """`failure`, or the recent failure of the connection that is behind it."""
        if failure.kind not in _KINDS_WITH_A_CAUSE_BEHIND:
            return failure
        with self._lock:
            connection = self._connection
        if connection is None or self._clock() - connection[0] > _RECENT_SECONDS:
            return failure
        cause = connection[1]
        return replace(cause, operation=failure.operation, topic=failure.topic)


class RotatingClient(Generic[C]):
    """A librdkafka client that is built again when its credential files change, or when that is asked for.

    `build` makes the client from a complete configuration, `retire` ends the one that was replaced.
    In the constructor, a configuration that librdkafka refuses raises ConfigurationError, and a machine that
    has no thread left for a client OSError. Credential files that cannot be used (absent, half written, key
    and certificate of different pairs) are no reason to give up: the client in use stays, `problem` has the
    reason, and the files are looked at again.

    `generation` counts the clients that have been built; a change means a new client that knows nothing of
    the earlier one's state. `problem` is why the files as they are now cannot be used, or None.
    """

    def __init__(
        self,
        build: Callable[[dict[str, Any]], C],
        properties: ClientProperties,
        role: Role,
        own: Mapping[str, str] | None = None,
        *,
        retire: Callable[[C], None] = lambda _client: None,
        on_failure: Callable[[KafkaFailure], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = CredentialFiles(properties.properties)
        self.errors = ErrorWatch(self._files.client_certificate, on_failure, clock)
        self._build = build
        self._retire = retire
        self._clock = clock
        self._configuration: dict[str, Any] = {
            **properties.for_role(role, own),
            "error_cb": self.errors.on_error,
            "logger": _QuietLog(self.errors.note),
        }
        # For the building thread: reading files may take its time, and no other thread has to wait for it.
        self._renewing = threading.Lock()
        self._lock = threading.Lock()
        self._client: C | None = None
        self._closed = False
        self._rests = False
        self._renewal_due = False
        self.generation = 0
        self.problem: KafkaFailure | None = None
        self._stamps = self._files.stamps()
        self._looked_at = clock()
        self._built_at = clock()
        self._rebuild(at_start=True)

    def client_certificate(self) -> ClientCertificate | None:
        """Our own certificate as it is on disk now."""
        return self._files.client_certificate()

    def failure(self, error: KafkaError, operation: Operation, topic: str | None) -> KafkaFailure:
        """The reason why a request failed: `error`, or the broken connection behind it where there is one."""
        failure = classify(error, operation=operation, topic=topic, certificate=self.client_certificate())
        if failure.is_of_controller:  # for the requests that then only time out
            self.errors.note(failure)
        return self.errors.explain(failure)

    def current(self) -> C | None:
        """The client to use now; None when none could be built yet (see `problem`), or after close()."""
        with self._lock:
            return self._client

    def refresh(self) -> None:
        """Build a new client if that was asked for, if the credential files were replaced, or if they could
        not be used so far. Looks once a second at most, so call it often.

        The client that is replaced is retired in the calling thread. A thread that comes while another one
        builds does not wait: it goes on with the client in use.
        """
        if not self._renewing.acquire(blocking=False):
            return
        try:
            retired = self._renew()
        finally:
            self._renewing.release()
        if retired is not None:
            self._retire(retired)

    def renew(self) -> None:
        """Have the next refresh() build a client that knows nothing of the one in use; from any thread.

        For topics that were deleted and created again: librdkafka keeps the leader epochs of the former one,
        and takes the lower ones of the new one for old news, so that it looks for its leader in vain.
        """
        with self._lock:
            self._renewal_due = True

    def rest(self) -> None:
        """End the client until wake() is called; there is nothing for it to do."""
        with self._renewing:
            with self._lock:
                self._rests = True
                client, self._client = self._client, None
            if client is not None:
                self._retire(client)

    def wake(self) -> None:
        """Build the client again if it rests."""
        with self._renewing:
            if not self._rests:
                return
            self._rests, self._stamps = False, self._files.stamps()
            ended_meanwhile = self._rebuild()
        if ended_meanwhile is not None:
            self._retire(ended_meanwhile)

    def close(self) -> None:
        """End the client. Further calls of current() return None."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            self._retire(client)

    def _renew(self) -> C | None:
        """Build a client where one is due; returns the one to retire, if any."""
        with self._lock:
            now = self._clock()
            if self._closed or self._rests:
                return None
            renewal_due, self._renewal_due = self._renewal_due, False
            if not renewal_due and now - self._looked_at < CREDENTIALS_LOOK_SECONDS:
                return None
            self._looked_at = now
            # The cause may lie elsewhere, as in the permissions of a directory above.
            retry = self.problem is not None and now - self._built_at >= CREDENTIALS_RETRY_SECONDS
            due = renewal_due or retry or self._client is None
        stamps = self._files.stamps()
        if stamps == self._stamps and not due:
            return None
        self._stamps, self._built_at = stamps, now
        return self._rebuild()

    def _rebuild(self, *, at_start: bool = False) -> C | None:
        """Build a client; returns the one to retire, if any."""
        try:
            client = self._build(dict(self._configuration))
        except KafkaException as error:
            text = error.args[0].str()
            no_resource = error.args[0].code() == KafkaError._CRIT_SYS_RESOURCE
            if at_start and no_resource:
                raise OSError(f"no Kafka client can be started: {text}") from None
            if at_start and not _is_about_credential_files(text):
                raise ConfigurationError(f"kafka: {text}") from None
            problem = KafkaFailure(
                Kind.OTHER if no_resource else Kind.AUTHENTICATION,
                f"No Kafka client can be started ({text}): it is tried again."
                if no_resource
                else self._files.refusal(plain_text(text)),
                code=error.args[0].name(),
                detail=text,
            )
            with self._lock:
                self.problem = problem
                in_use = self._client
            if in_use is None:  # otherwise it proves nothing about the one in use
                self.errors.note(problem)
            return None
        with self._lock:
            if self._closed:
                return client
            retired, self._client = self._client, client
            self.generation += 1
            self.problem = None
        return retired


def look_at_properties(properties: ClientProperties) -> str | None:
    """Have librdkafka check the properties, without any broker.

    Returns what keeps a client from being built until credential files are there, or None. Raises
    ConfigurationError for what it refuses, OSError where no client can be started.
    """
    client = RotatingClient(_client_beside_brokers, properties, Role.ADMIN, retire=end_admin_client)
    client.close()
    return None if client.problem is None else client.problem.sentence


def end_admin_client(client: AdminClient) -> None:
    """End an Admin client on this thread; waits for calls of other threads that are under way.

    A client that is dropped ends with its last reference. The garbage collector may find that one on a thread
    of librdkafka, which aborts the process.
    """
    client.__exit__(None, None, None)


def _client_beside_brokers(configuration: dict[str, Any]) -> AdminClient:
    brokers = ("bootstrap.servers", "metadata.broker.list")
    return AdminClient({name: value for name, value in configuration.items() if name not in brokers})


def _is_about_credential_files(text: str) -> bool:
    if "mandatory" in text or "not supported" in text:  # as of Java's key stores, whatever is in them
        return False
    return _FILE_PROPERTY_IN_TEXT.search(text) is not None
