"""Failures of Kafka: a closed set of kinds, each with one sentence for people.

The same sentence goes to the journal and to `kquota status`; the kind is the label of the error counters.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from confluent_kafka import KafkaError

from kquota.kafka.credentials import ClientCertificate


class Kind(StrEnum):
    """Why a request to Kafka failed. The values are metric labels: they never change their meaning."""

    UNREACHABLE = "unreachable"
    AUTHENTICATION = "authentication"
    CERTIFICATE_EXPIRED = "certificate-expired"
    CERTIFICATE_UNTRUSTED = "certificate-untrusted"
    ACL_DENIED = "acl-denied"
    TOPIC_MISSING = "topic-missing"
    TOPIC_REFUSED = "topic-refused"
    TIMEOUT = "timeout"
    TOO_LARGE = "too-large"
    OTHER = "other"


class Operation(StrEnum):
    """The ACL operation that a request needs (on the topic, or on the cluster where no topic is named)."""

    READ = "read"
    WRITE = "write"
    DESCRIBE = "describe"
    DESCRIBE_CONFIGS = "describe-configs"
    ALTER_CONFIGS = "alter-configs"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class KafkaFailure:
    """A failed request, as a value.

    `sentence` is for people: the failure, its broker, topic or operation, and the remedy.
    `code` is librdkafka's or the broker's name of the error, `detail` its own text.
    """

    kind: Kind
    sentence: str
    operation: Operation | None = None
    topic: str | None = None
    broker: str | None = None
    code: str = ""
    detail: str = ""

    @property
    def is_want_of_resources(self) -> bool:
        """Whether librdkafka got no thread or descriptor; for it a broker may be missing from then on."""
        return self.code == KafkaError(KafkaError._CRIT_SYS_RESOURCE).name()

    @property
    def is_of_controller(self) -> bool:
        """Whether a controller answered, which knows no topic: no other request to it is answered."""
        return self.code == KafkaError(KafkaError._UNSUPPORTED_FEATURE).name()

    @property
    def is_connection(self) -> bool:
        """Whether the connection itself failed, so that no request of any kind can succeed."""
        return self.kind in _CONNECTION_KINDS


_CONNECTION_KINDS = frozenset(
    {Kind.UNREACHABLE, Kind.AUTHENTICATION, Kind.CERTIFICATE_EXPIRED, Kind.CERTIFICATE_UNTRUSTED}
)

_CODES_OF_KIND = {
    Kind.UNREACHABLE: """
        _TRANSPORT _RESOLVE _ALL_BROKERS_DOWN _UNKNOWN_BROKER NETWORK_EXCEPTION BROKER_NOT_AVAILABLE
        _UNSUPPORTED_FEATURE""",
    Kind.CERTIFICATE_UNTRUSTED: "_SSL",
    Kind.AUTHENTICATION: """
        _AUTHENTICATION SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE""",
    Kind.ACL_DENIED: """
        TOPIC_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED""",
    Kind.TOPIC_MISSING: """
        _UNKNOWN_TOPIC _UNKNOWN_PARTITION UNKNOWN_TOPIC_OR_PART UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID""",
    Kind.TOPIC_REFUSED: """
        POLICY_VIOLATION INVALID_CONFIG INVALID_PARTITIONS INVALID_REPLICATION_FACTOR
        INVALID_REPLICA_ASSIGNMENT TOPIC_EXCEPTION""",
    Kind.TIMEOUT: "_TIMED_OUT _TIMED_OUT_QUEUE _MSG_TIMED_OUT REQUEST_TIMED_OUT",
    Kind.TOO_LARGE: "MSG_SIZE_TOO_LARGE INVALID_MSG_SIZE RECORD_LIST_TOO_LARGE",
}
_KIND_OF_CODE: dict[int, Kind] = {
    getattr(KafkaError, name): kind for kind, names in _CODES_OF_KIND.items() for name in names.split()
}

# librdkafka names the broker at the start of its texts: "ssl://host:9093/1: Connect to … failed"
# ("bootstrap" for no id).
_BROKER_IN_TEXT = re.compile(r"(?:^|\s)(?:[a-z_]+://)?(?P<broker>[^/\s]+:\d+)/(?:bootstrap|-?\d+)\b")
_CONTROLLER = (
    "The cluster does not answer clients at kafka.bootstrap.servers: name the listener of a broker there,"
    " not that of a controller."
)
_STATE_IN_TEXT = re.compile(r"\s*\(after \d+ms in state .*\)$")
_SSL_SOURCE_IN_TEXT = re.compile(r"error:[0-9A-F]+:(?:SSL routines::?)?")
_CLIENT_IN_TEXT = re.compile(r"^Failed to create (?:admin client|consumer|producer): ")

# A Java broker answers an expired client certificate with alert 46 (certificate unknown) and one of a foreign
# authority with 42 (bad certificate); other TLS servers use the exact alerts of RFC 8446.
_PEER_SAYS_EXPIRED = re.compile(r"alert certificate expired")
_PEER_REFUSES_CERTIFICATE = re.compile(
    r"alert (?:bad certificate|certificate unknown|certificate required|certificate revoked"
    r"|unsupported certificate|unknown ca|handshake failure|access denied)"
)
_WE_REFUSE_CERTIFICATE = re.compile(
    r"certificate verify failed|certificate could not be verified|hostname mismatch"
)
_WE_SAY_EXPIRED = re.compile(r"certificate (?:has )?expired")
# A listener with TLS or SASL ends a plain connection at its first request, and so may another server.
_ENDS_AT_FIRST_REQUEST = re.compile(r"(?:Disconnected|timed out).* in state APIVERSION_QUERY", re.DOTALL)
_REMEDIES = (
    (
        re.compile(r"Failed to resolve"),
        "correct the host name in kafka.bootstrap.servers, or add it to DNS or /etc/hosts.",
    ),
    (
        re.compile(r"Connection refused"),
        "start Kafka there, or correct the address in kafka.bootstrap.servers"
        " or in the broker's advertised.listeners.",
    ),
    (
        re.compile(r"connecting to a PLAINTEXT broker listener"),
        "this listener has no TLS; set kafka.security.protocol to plaintext or sasl_plaintext, as the broker"
        " has it, or name another listener in kafka.bootstrap.servers.",
    ),
    (
        _ENDS_AT_FIRST_REQUEST,
        "this listener wants TLS or SASL, or is not Kafka's; set kafka.security.protocol to the listener's,"
        " or name another one in kafka.bootstrap.servers.",
    ),
)


def classify(
    error: KafkaError,
    *,
    operation: Operation | None = None,
    topic: str | None = None,
    certificate: ClientCertificate | None = None,
    now: datetime | None = None,
) -> KafkaFailure:
    """The KafkaFailure for `error`, met while doing `operation` on `topic`.

    `certificate` is the client certificate in use: brokers do not report whether they refused it because it
    has expired, so its own validity decides. `now` defaults to the wall clock.
    """
    text = error.str()
    found = _BROKER_IN_TEXT.search(text)
    broker = found["broker"] if found else None
    kind = _kind(error.code(), text, certificate, now or datetime.now(UTC))
    return KafkaFailure(
        kind=kind,
        sentence=_CONTROLLER
        if error.code() == KafkaError._UNSUPPORTED_FEATURE
        else _sentence(kind, text, operation, topic, broker, certificate),
        operation=operation,
        topic=topic,
        broker=broker,
        code=error.name(),
        detail=text,
    )


def refusal_at_first_request(log_line: str) -> KafkaFailure | None:
    """The failure that librdkafka only logs: the listener ends each connection at the first request."""
    if _ENDS_AT_FIRST_REQUEST.search(log_line) is None:
        return None
    return classify(KafkaError(KafkaError._TRANSPORT, log_line.partition("]: ")[2] or log_line))


def _kind(code: int, text: str, certificate: ClientCertificate | None, now: datetime) -> Kind:
    kind = _KIND_OF_CODE.get(code, Kind.OTHER)
    if kind not in _CONNECTION_KINDS:
        return kind
    if _PEER_SAYS_EXPIRED.search(text) or _WE_SAY_EXPIRED.search(text):
        return Kind.CERTIFICATE_EXPIRED
    if _PEER_REFUSES_CERTIFICATE.search(text):
        expired = certificate is not None and certificate.has_expired(now)
        return Kind.CERTIFICATE_EXPIRED if expired else Kind.CERTIFICATE_UNTRUSTED
    if _WE_REFUSE_CERTIFICATE.search(text):
        return Kind.CERTIFICATE_UNTRUSTED
    # A TLS error that is not about a certificate (a listener without TLS, no common protocol) is no matter
    # of trust.
    return Kind.UNREACHABLE if kind is Kind.CERTIFICATE_UNTRUSTED else kind


def plain_text(text: str) -> str:
    """librdkafka's text without the broker, the client, the state of the connection and OpenSSL's numbers."""
    text = _BROKER_IN_TEXT.sub("", _CLIENT_IN_TEXT.sub("", text), count=1)
    text = _STATE_IN_TEXT.sub("", text)
    return _SSL_SOURCE_IN_TEXT.sub("", text).strip(" :")


def _sentence(
    kind: Kind,
    text: str,
    operation: Operation | None,
    topic: str | None,
    broker: str | None,
    certificate: ClientCertificate | None,
) -> str:
    if kind in _CONNECTION_KINDS:
        return _connection_sentence(kind, text, broker, certificate)
    plain = plain_text(text)
    asked = f"{operation or 'request'}{f' of topic {topic}' if topic else ''}"
    match kind:
        case Kind.ACL_DENIED:
            where = f"topic {topic}" if topic else "the cluster"
            # An agent alters settings of brokers alone, and an operator those of topics.
            whose = "operator's" if operation is Operation.ALTER_CONFIGS and topic else "agent's"
            return (
                f"The cluster denied {operation or 'the request'} on {where}: "
                f"give the {whose} principal the {operation or 'missing'} permission by an ACL."
            )
        case Kind.TOPIC_MISSING:
            return (
                f"Topic {topic or 'of the request'} does not exist: an agent creates it within some seconds,"
                " if topics.create is true and its principal may; otherwise create it with the settings"
                " that docs/runbook.md names."
            )
        case Kind.TOPIC_REFUSED:
            return (
                f"The cluster refused the settings of topic {topic or 'of the request'} ({plain}): "
                "create it by hand with the documented settings."
            )
        case Kind.TIMEOUT:
            return (
                f"The {asked} was not answered in time ({plain}): "
                "the broker hangs, is overloaded or cannot be reached."
            )
        case Kind.TOO_LARGE:
            return f"The {asked} was refused as too large ({plain}): see max.message.bytes of the topic."
        case _:
            return f"The {asked} failed ({plain})."


def _connection_sentence(
    kind: Kind, text: str, broker: str | None, certificate: ClientCertificate | None
) -> str:
    plain = plain_text(text)
    at = f"Broker {broker}" if broker else "The cluster"
    theirs = f"broker {broker}" if broker else "the cluster"
    ours = f"the client certificate {certificate.path}" if certificate else "the client certificate"
    refused_ours = "alert" in plain
    match kind:
        case Kind.AUTHENTICATION:
            return (
                f"{at} refused the login ({plain}): check kafka.security.protocol, sasl.mechanism,"
                " sasl.username and the password."
            )
        case Kind.CERTIFICATE_EXPIRED if refused_ours:
            when = f" at {certificate.not_after:%Y-%m-%dT%H:%M:%SZ}" if certificate else ""
            return f"{at} refused {ours}: it expired{when}; renew it, the files are read again by themselves."
        case Kind.CERTIFICATE_EXPIRED:
            return f"The certificate of {theirs} has expired: renew it there."
        case Kind.CERTIFICATE_UNTRUSTED if refused_ours and certificate is None:
            return (
                f"{at} wants a client certificate, and there is none ({plain}): set"
                " kafka.ssl.certificate.location and kafka.ssl.key.location."
            )
        case Kind.CERTIFICATE_UNTRUSTED if refused_ours:
            return (
                f"{at} refused {ours} ({plain}): "
                "an authority that the broker's truststore holds must have signed it, and it must be valid."
            )
        case Kind.CERTIFICATE_UNTRUSTED:
            return (
                f"The certificate of {theirs} could not be verified ({plain}): it has expired, "
                "is for another host name, or ssl.ca.location does not hold its authority."
            )
        case _:
            remedies = (remedy for sign, remedy in _REMEDIES if sign.search(text))
            remedy = next(
                remedies,
                "check that it runs, and kafka.bootstrap.servers, kafka.security.protocol and the way there.",
            )
            return f"{at} cannot be reached ({plain}): {remedy}"
