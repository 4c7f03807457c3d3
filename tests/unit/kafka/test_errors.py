"""Errors in plain words. The texts are librdkafka's own, as seen against real brokers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaError

from kquota.kafka.client import ErrorWatch
from kquota.kafka.credentials import ClientCertificate
from kquota.kafka.errors import KafkaFailure, Kind, Operation, classify

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ALERT = (
    "ssl://10.0.0.1:9093/bootstrap: Receive failed: "
    "error:0A000{}:SSL routines::ssl/tls alert {}: SSL alert number {}"
)
STATE = " (after 12ms in state APIVERSION_QUERY)"
VERIFY = (
    "ssl://10.0.0.1:9093/3: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: "
    "broker certificate could not be verified, verify that ssl.ca.location is correctly configured or root "
    "CA certificates are installed (install ca-certificates package) (after 3ms in state SSL_HANDSHAKE)"
)


def certificate(days_left: int) -> ClientCertificate:
    return ClientCertificate("/etc/a.pem", "CN=a", NOW - timedelta(days=90), NOW + timedelta(days=days_left))


REFUSED = "ssl://10.0.0.1:9093/1: Connect to ipv4#10.0.0.1:9093 failed: Connection refused "
NO_TLS = "ssl://10.0.0.1:9093/bootstrap: SSL handshake failed: Disconnected: SSL connection closed by peer: "


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (
            KafkaError._TRANSPORT,
            f"{REFUSED}(after 0ms in state CONNECT, 1 identical error(s) suppressed)",
            Kind.UNREACHABLE,
        ),
        (KafkaError._TRANSPORT, f"{NO_TLS}connecting to a PLAINTEXT broker listener?", Kind.UNREACHABLE),
        (KafkaError._RESOLVE, "10.0.0.1:9093/bootstrap: Failed to resolve", Kind.UNREACHABLE),
        (KafkaError._SSL, VERIFY, Kind.CERTIFICATE_UNTRUSTED),
        (
            KafkaError._TRANSPORT,
            ALERT.format("412", "bad certificate", 42) + STATE,
            Kind.CERTIFICATE_UNTRUSTED,
        ),
        (
            KafkaError._TRANSPORT,
            ALERT.format("416", "certificate unknown", 46) + STATE,
            Kind.CERTIFICATE_UNTRUSTED,
        ),
        (
            KafkaError._TRANSPORT,
            ALERT.format("415", "certificate expired", 45) + STATE,
            Kind.CERTIFICATE_EXPIRED,
        ),
        (KafkaError._AUTHENTICATION, "sasl_ssl://10.0.0.1:9093/1: SASL failed", Kind.AUTHENTICATION),
    ],
)
def test_failures_of_the_connection(code: int, text: str, kind: Kind) -> None:
    failure = classify(KafkaError(code, text), certificate=certificate(30), now=NOW)
    assert failure.kind is kind
    assert failure.is_connection
    assert failure.broker == "10.0.0.1:9093"
    assert "10.0.0.1:9093" in failure.sentence
    assert "in state" not in failure.sentence
    assert "error:0A" not in failure.sentence
    assert failure.detail == text


@pytest.mark.parametrize("alert", [("412", "bad certificate", 42), ("416", "certificate unknown", 46)])
def test_our_certificates_own_validity_decides_why_it_was_refused(alert: tuple[str, str, int]) -> None:
    error = KafkaError(KafkaError._TRANSPORT, ALERT.format(*alert))
    failure = classify(error, certificate=certificate(-1), now=NOW)
    assert failure.kind is Kind.CERTIFICATE_EXPIRED
    assert "/etc/a.pem: it expired at 2026-11-20T12:00:00Z; renew it" in failure.sentence
    assert classify(error, certificate=None, now=NOW).kind is Kind.CERTIFICATE_UNTRUSTED


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Kind.ACL_DENIED),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, Kind.ACL_DENIED),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, Kind.TOPIC_MISSING),
        (KafkaError._UNKNOWN_PARTITION, Kind.TOPIC_MISSING),
        (KafkaError.POLICY_VIOLATION, Kind.TOPIC_REFUSED),
        (KafkaError._MSG_TIMED_OUT, Kind.TIMEOUT),
        (KafkaError.MSG_SIZE_TOO_LARGE, Kind.TOO_LARGE),
        (KafkaError.NOT_ENOUGH_REPLICAS, Kind.OTHER),
    ],
)
@pytest.mark.parametrize("operation", list(Operation))
def test_failures_of_a_request_name_what_was_asked(code: int, kind: Kind, operation: Operation) -> None:
    failure = classify(KafkaError(code), operation=operation, topic="t-1")
    assert (failure.kind, failure.operation, failure.topic) == (kind, operation, "t-1")
    assert not failure.is_connection
    assert "t-1" in failure.sentence
    assert failure.sentence.endswith(".")
    if kind is Kind.ACL_DENIED:
        assert f"denied {operation} on topic t-1" in failure.sentence


def test_a_timeout_is_explained_by_the_broken_connection_behind_it_while_that_is_recent() -> None:
    now = [100.0]
    watch = ErrorWatch(clock=lambda: now[0])
    timeout = classify(KafkaError(KafkaError._TIMED_OUT), operation=Operation.WRITE, topic="t-1")
    denied = classify(
        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), operation=Operation.WRITE, topic="t-1"
    )
    assert watch.explain(timeout) is timeout
    watch.on_error(KafkaError(KafkaError._SSL, VERIFY))
    explained = watch.explain(timeout)
    assert (explained.kind, explained.operation, explained.topic) == (
        Kind.CERTIFICATE_UNTRUSTED,
        Operation.WRITE,
        "t-1",
    )
    assert watch.explain(denied) is denied
    now[0] += 15.1
    assert watch.explain(timeout) is timeout
    watch.on_error(KafkaError(KafkaError._SSL, VERIFY))
    watch.contact()
    assert watch.explain(timeout) is timeout


def test_all_brokers_down_is_told_with_the_reason_heard_just_before() -> None:
    told: list[KafkaFailure] = []
    watch = ErrorWatch(on_failure=told.append)
    watch.on_error(KafkaError(KafkaError._TRANSPORT, "10.0.0.1:9093/1: Connect failed: Connection refused"))
    assert not watch.all_brokers_down
    watch.on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert watch.all_brokers_down
    assert [failure.broker for failure in told] == ["10.0.0.1:9093"] * 2
    # An error of a topic is reported to the code that uses it, and is no failure of the connection.
    watch.on_error(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "t-1 [0]: topic does not exist"))
    assert len(told) == 2


def test_a_connection_that_fails_all_the_time_is_told_once_a_second() -> None:
    now = [100.0]
    told: list[KafkaFailure] = []
    watch = ErrorWatch(on_failure=told.append, clock=lambda: now[0])
    for _ in range(25):
        watch.on_error(KafkaError(KafkaError._SSL, VERIFY))
        now[0] += 0.125
    assert len(told) == 4
    watch.on_error(KafkaError(KafkaError._TRANSPORT, "10.0.0.1:9093/1: Connection refused"))
    assert len(told) == 5, "another failure is reported at once"
