"""Looking at our topics on the cluster, again and again, and creating them where they are absent."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from kquota.kafka.admin import AdminConnection, Pending
from kquota.kafka.errors import KafkaFailure, Kind, Operation
from kquota.kafka.threads import Watch, going_on
from kquota.kafka.topics import TopicContract, TopicVerdict, Verdict, judge

T = TypeVar("T")


class TopicCheck:
    """Looks at one topic, and creates it where it is absent and `create` allows it.

    Replication factor and partition count, where they are not configured, follow from the number of brokers
    at the moment of creation, and stay. So the same set of brokers must have been seen for `settle_seconds`
    before a topic is created: while a whole cluster starts, the first look may show one broker of many.
    """

    def __init__(
        self,
        admin: AdminConnection,
        contract: TopicContract,
        *,
        create: bool = True,
        settle_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._contract = contract
        self._verdict = partial(TopicVerdict, contract.name)
        self._create = create
        self._settle_seconds = settle_seconds
        self._clock = clock
        self._seen: tuple[frozenset[int], float] | None = None

    def look(self) -> TopicVerdict:
        """Look once, and create the topic if need be. Blocks for some request timeouts at most."""
        name = self._contract.name
        cluster = self._admin.describe_cluster().result()
        if isinstance(cluster, KafkaFailure):
            return self._unknown(cluster)
        settled = self._settled(cluster.broker_ids)
        facts = self._admin.describe_topic(name).result()
        created = False
        if isinstance(facts, KafkaFailure):
            if facts.kind is not Kind.TOPIC_MISSING:
                return self._unknown(facts)
            if not self._create:
                sentence = (
                    f"Topic {name} does not exist, and topics.create is false: create it with the settings"
                    " that docs/runbook.md names."
                )
                return self._verdict(Verdict.ABSENT, sentence, failure=facts)
            if not settled:
                sentence = (
                    f"Topic {name} does not exist; it is created once the same brokers have been seen "
                    f"for {self._settle_seconds:g} s."
                )
                return self._verdict(Verdict.ABSENT, sentence, failure=facts)
            failure = self._create_for(len(cluster.broker_ids))
            if failure is not None:
                return failure
            created = True
            facts = self._once_known(lambda: self._admin.describe_topic(name))
            if isinstance(facts, KafkaFailure):
                return self._unknown(facts)
        # The broker asked for the settings may be another one.
        settings = self._once_known(lambda: self._admin.topic_settings(name))
        if isinstance(settings, KafkaFailure):
            return self._unknown(settings, facts.topic_id)
        return judge(self._contract, facts, settings, len(cluster.broker_ids), created=created)

    def _settled(self, brokers: frozenset[int]) -> bool:
        now = self._clock()
        if self._seen is None or self._seen[0] != brokers:
            self._seen = (brokers, now)
        return bool(brokers) and now - self._seen[1] >= self._settle_seconds

    def _create_for(self, brokers: int) -> TopicVerdict | None:
        failure = self._admin.create_topic(
            self._contract.name,
            partitions=self._contract.partitions_among(brokers),
            replication_factor=self._contract.replicas_among(brokers),
            settings=self._contract.settings,
        ).result()
        if failure is None:
            return None
        if failure.kind is Kind.TOPIC_REFUSED:
            return self._verdict(Verdict.ABSENT, failure.sentence, failure=failure)
        return self._verdict(
            Verdict.ABSENT if failure.kind is Kind.ACL_DENIED else Verdict.UNKNOWN,
            f"Topic {self._contract.name} does not exist and could not be created: {failure.sentence}",
            failure=failure,
        )

    def _once_known(self, ask: Callable[[], Pending[T]]) -> T | KafkaFailure:
        """Ask about a topic just created until the broker asked has heard of it from the controller."""
        deadline = self._clock() + 5.0
        while True:
            answer = ask().result()
            if not isinstance(answer, KafkaFailure) or answer.kind is not Kind.TOPIC_MISSING:
                return answer
            if self._clock() >= deadline:
                return answer
            time.sleep(0.1)

    def _unknown(self, failure: KafkaFailure, topic_id: str | None = None) -> TopicVerdict:
        asked = "settings" if failure.operation is Operation.DESCRIBE_CONFIGS else "state"
        sentence = failure.sentence
        if not failure.is_connection:  # which the other clients report in the same words
            sentence = f"The {asked} of topic {self._contract.name} cannot be learnt: {sentence}"
        return self._verdict(Verdict.UNKNOWN, sentence, topic_id=topic_id, failure=failure)


class TopicWatch(Watch):
    """Looks at topics regularly in a thread of its own, so that a deletion, a new creation or a changed
    cleanup.policy is seen. Every verdict goes to `sink`. An absent or unknown topic is looked at every
    second. `also` is called after each look, for other rare checks that may take their time.
    `pause_seconds` may make the interval longer.
    """

    def __init__(
        self,
        checks: Sequence[TopicCheck],
        sink: Callable[[TopicVerdict], None],
        *,
        interval_seconds: float = 10.0,
        retry_seconds: float = 1.0,
        also: Callable[[], None] = lambda: None,
        pause_seconds: Callable[[float], float] = lambda seconds: seconds,
    ) -> None:
        self._checks = tuple(checks)
        self._sink = sink
        self._also = also
        self._pause = pause_seconds
        self._interval_seconds = interval_seconds
        self._retry_seconds = retry_seconds
        super().__init__("kquota-topics")

    def _run(self) -> None:
        while not self._stop.is_set():
            settled = 0
            for check in self._checks:
                if self._stop.is_set():
                    return
                with going_on("looking at a topic"):
                    verdict = check.look()
                    settled += verdict.status not in (Verdict.ABSENT, Verdict.UNKNOWN)
                    self._sink(verdict)
            with going_on("the additional check"):
                self._also()
            all_settled = settled == len(self._checks)
            self._stop.wait(self._pause(self._interval_seconds) if all_settled else self._retry_seconds)
