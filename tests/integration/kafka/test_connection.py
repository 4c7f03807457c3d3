"""Connections: mutual TLS, refusals in plain words, rotated certificates."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kquota.formats.records import TopicRecord
from kquota.kafka.admin import AdminConnection, ClusterFacts
from kquota.kafka.config import ClientProperties
from kquota.kafka.errors import KafkaFailure, Kind, Operation
from kquota.kafka.followed_topic import ReadTopic
from kquota.kafka.operator_producer import Published, publish_operator_record
from kquota.kafka.producer import ProducerThread
from kquota.kafka.publisher import UsagePublisher
from kquota.kafka.reader import TopicReader
from kquota.kafka.topic_check import TopicCheck
from kquota.kafka.topic_records import ReadingRecovered
from kquota.kafka.topics import usage_topic
from testbed.loopback.certificates import CertificateAuthority
from testbed.loopback.cluster import KafkaCluster
from tests.integration.kafka.conftest import AGENT, PATIENCE_SECONDS, Seen, properties_of, read_all
from tests.integration.waiting import eventually

Close = Callable[[Any], Any]


def ask(properties: ClientProperties, close: Close) -> ClusterFacts | KafkaFailure:
    """The outcome of a question; a refused client learns it within the allowed time, or not at all."""
    return close(AdminConnection(properties, request_timeout_seconds=5)).describe_cluster().result()


@pytest.mark.accepts("A13")
def test_everything_goes_over_mutual_tls_to_the_named_listener(
    secured: KafkaCluster,
    properties: ClientProperties,
    admin: AdminConnection,
    topic_name: str,
    closing: Close,
) -> None:
    assert properties.properties["bootstrap.servers"] == secured.internal_bootstrap_servers
    assert TopicCheck(admin, usage_topic(topic_name), settle_seconds=0).look().usable
    publisher = UsagePublisher(
        closing(ProducerThread(properties, lifetime_seconds=PATIENCE_SECONDS)), topic_name
    )
    publisher.publish(b"1", b"{}")
    assert publisher.flush(PATIENCE_SECONDS)
    assert publisher.state().connected
    _, seen = read_all(properties, topic_name, admin, closing)
    assert seen.values == [b"{}"]
    # The broker knows the agent by its certificate: another certificate's name has none of its permissions.
    refused = publish_operator_record(
        properties_of(secured, "somebody"), topic_name, b"1", b"{}", (), PATIENCE_SECONDS
    )
    assert isinstance(refused, KafkaFailure)
    assert refused.kind is Kind.ACL_DENIED
    # … and no client is admitted without one.
    nameless = {
        name: value
        for name, value in secured.client_configuration(AGENT).items()
        if name not in ("ssl.certificate.location", "ssl.key.location")
    }
    found = ask(ClientProperties(nameless, node=1), closing)
    assert isinstance(found, KafkaFailure)
    assert found.kind is Kind.CERTIFICATE_UNTRUSTED


def test_a_certificate_of_another_authority_is_told_from_an_expired_one(
    secured: KafkaCluster, tmp_path: Path, closing: Close
) -> None:
    foreign = CertificateAuthority(tmp_path / "foreign").issue(AGENT)
    found = ask(
        properties_of(
            secured,
            **{"ssl.certificate.location": str(foreign.certificate), "ssl.key.location": str(foreign.key)},
        ),
        closing,
    )
    assert isinstance(found, KafkaFailure)
    assert found.kind is Kind.CERTIFICATE_UNTRUSTED
    assert str(foreign.certificate) in found.sentence
    assert found.broker in secured.internal_bootstrap_servers.split(",")

    secured.authority.issue("expired", lifetime=timedelta(minutes=-5))
    found = ask(properties_of(secured, "expired"), closing)
    assert isinstance(found, KafkaFailure)
    assert found.kind is Kind.CERTIFICATE_EXPIRED
    assert "expired at" in found.sentence


def test_a_broker_whose_authority_we_do_not_know_is_not_trusted(
    secured: KafkaCluster, tmp_path: Path, closing: Close
) -> None:
    stranger = CertificateAuthority(tmp_path / "stranger")
    found = ask(properties_of(secured, **{"ssl.ca.location": str(stranger.certificate)}), closing)
    assert isinstance(found, KafkaFailure)
    assert found.kind is Kind.CERTIFICATE_UNTRUSTED
    assert "ssl.ca.location" in found.sentence


def test_a_listener_without_tls_and_a_closed_port_are_unreachable_and_nothing_is_printed(
    secured: KafkaCluster, closing: Close, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    for address in (secured.nodes[1].clients_address, "127.0.0.1:1"):
        found = ask(properties_of(secured, **{"bootstrap.servers": address}), closing)
        assert isinstance(found, KafkaFailure)
        assert found.kind is Kind.UNREACHABLE
        assert address in found.sentence
        assert found.operation is Operation.DESCRIBE
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


@pytest.mark.accepts("F22")
def test_an_expired_certificate_is_named_and_counted_and_its_rotation_is_enough(
    secured: KafkaCluster, admin: AdminConnection, topic_name: str, closing: Close
) -> None:
    assert TopicCheck(admin, usage_topic(topic_name), settle_seconds=0).look().usable
    # An identity of its own: the super user's name, in files that can be rotated under the agent's feet.
    files = CertificateFiles(secured, AGENT)
    files.write(lifetime=timedelta(minutes=-5))
    properties = files.properties
    own_admin = closing(AdminConnection(properties, request_timeout_seconds=2))
    publisher = UsagePublisher(closing(ProducerThread(properties, lifetime_seconds=2)), topic_name)
    seen = Seen()
    closing(TopicReader(properties, own_admin, ReadTopic(topic_name, seen))).start()

    def publish() -> bool:
        publisher.publish(b"1", b"{}")
        publisher.flush(PATIENCE_SECONDS)
        return publisher.state().connected

    def refused() -> bool:
        assert not publish()
        return publisher.state().errors[Kind.CERTIFICATE_EXPIRED] >= 1

    eventually(refused, "the publisher says what is wrong")
    state = publisher.state()
    assert state.last_failure is not None
    assert "renew it" in state.last_failure.sentence
    eventually(
        lambda: seen.trouble and seen.trouble.kind is Kind.CERTIFICATE_EXPIRED,
        "the reader says what is wrong",
    )

    files.write(lifetime=timedelta(hours=1))
    eventually(publish, "the publisher has taken up the new certificate")
    eventually(lambda: seen.of(TopicRecord), "the reader has taken up the new certificate")
    eventually(lambda: seen.of(ReadingRecovered) and seen.trouble is None, "the reader says that it is over")
    eventually(
        lambda: isinstance(own_admin.describe_cluster().result(), ClusterFacts),
        "the admin has taken up the new certificate",
    )
    published = publish_operator_record(properties, topic_name, b"hold", None, (), PATIENCE_SECONDS)
    assert isinstance(published, Published)
    eventually(lambda: [one for one in seen.of(TopicRecord) if one.key == b"hold"], "it is read")
    (read,) = [one for one in seen.of(TopicRecord) if one.key == b"hold"]
    assert published.appended_ms == read.appended_ms, "the broker's time, as readers see it"


def test_half_written_credentials_leave_the_connection_in_use_alone(
    secured: KafkaCluster, admin: AdminConnection, topic_name: str, closing: Close
) -> None:
    assert TopicCheck(admin, usage_topic(topic_name), settle_seconds=0).look().usable
    files = CertificateFiles(secured, AGENT)
    files.write()
    publisher = UsagePublisher(
        closing(ProducerThread(files.properties, lifetime_seconds=PATIENCE_SECONDS)), topic_name
    )
    publisher.publish(b"1", b"before")
    assert publisher.flush(PATIENCE_SECONDS)
    files.certificate.write_text("-----BEGIN CERTIFICATE-----\nonly a beg")
    eventually(publisher.credentials_problem, "the publisher has noticed")
    publisher.publish(b"1", b"meanwhile")
    assert publisher.flush(PATIENCE_SECONDS)
    assert publisher.state().delivered == 2
    files.write()
    eventually(lambda: publisher.credentials_problem() is None, "the publisher has the new ones")
    publisher.publish(b"1", b"after")
    assert publisher.flush(PATIENCE_SECONDS)
    assert publisher.state().delivered == 3


class CertificateFiles:
    """A certificate and key under fixed names, that can be written again."""

    def __init__(self, cluster: KafkaCluster, common_name: str) -> None:
        directory = cluster.path / "rotated"
        directory.mkdir(exist_ok=True)
        self._authority = cluster.authority
        self._common_name = common_name
        self.certificate = directory / "agent.pem"
        self._key = directory / "agent.key"
        self.properties = properties_of(
            cluster,
            **{"ssl.certificate.location": str(self.certificate), "ssl.key.location": str(self._key)},
        )

    def write(self, lifetime: timedelta = timedelta(hours=1)) -> None:
        identity = self._authority.issue(self._common_name, lifetime=lifetime)
        shutil.copy(identity.certificate, self.certificate)
        shutil.copy(identity.key, self._key)
        # The same name again for all others.
        self._authority.issue(self._common_name)
