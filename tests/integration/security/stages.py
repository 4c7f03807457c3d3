"""The situations in which attacks are tried, and what each achieves there, by what the agents decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kquota.formats.sentences import wrong_topic_sentence
from kquota.kafka.misplaced import partition_of
from testbed.loopback.clients import admin_client
from tests.integration.security.attackers import ADMINISTRATOR, PARTITIONS, TYPED, Armoury, Attacker
from tests.integration.security.attacks import DOWN, OWN, VICTIM, Write, hold, order
from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import ORDERS_TOPIC, SOON_STALE_SECONDS, USAGE_TOPIC, Fleet
from tests.integration.waiting import eventually

OTHERS = (2, VICTIM)
_SEGMENT_MS = {USAGE_TOPIC: "1800000", ORDERS_TOPIC: "86400000"}
_OF_DOWN = ("down", "compacted")
"""The stages in which a broker that is down was full."""


class Stages:
    """Three brokers, of which the attacker has the key of the first one's agent.

    A stage is kept until an attack needs another one. Records of attackers are withdrawn then, and after
    each attack that has achieved something.
    """

    def __init__(self, fleet: Fleet, armoury: Armoury) -> None:
        self.fleet, self.armoury = fleet, armoury
        self.mode, self._stage = "", "healthy"
        self._written: set[tuple[str, str, int]] = set()
        self._numbers = count(10_000)

    def switch(self, mode: str) -> None:
        """Have all agents begin with that mode of signing; with new topics, without traces of another one."""
        if mode == self.mode:
            return
        if self.mode:
            self._enter("healthy")
            self._delete_topics()
        self.mode = mode
        self.armoury.revoked_forgers()
        for broker_id, agent in self.fleet.agents.items():
            identity = self.armoury.identity(f"agent/{broker_id}")
            files = {"certificate_file": str(identity.certificate), "key_file": str(identity.key)}
            agent.write_config(signing={"mode": mode, "revoked_file": str(self.armoury.revoked), **files})
            agent.decision_path.unlink(missing_ok=True)  # of the mode before
            agent.start()
        self.fleet.await_enforced("OPEN")
        self.operator, self.down = self.armoury.owner("operator/cleaner"), self.armoury.owner(f"agent/{DOWN}")
        self._report_down(full=False)

    def play(self, stage: str, write: Write, attacker: Attacker) -> str:
        """Return the outcome of an attack, by its name in docs/attacks.yml."""
        outcome = None
        try:
            self._enter(stage)
            outcome = str(getattr(self, f"_{stage}")(write, attacker))
        finally:
            self._written |= attacker.written
            # A broker that is silenced stays so, and no attack comes after that.
            if outcome != "nothing" and stage != "silenced":
                self._withdraw()
        return outcome

    def _enter(self, stage: str) -> None:
        if stage == self._stage:
            return
        before, self._stage = self._stage, stage
        for agent in self.fleet.of():
            if not agent.process.running():
                _start(agent)
        if stage == "full":
            self.fleet.fill(VICTIM, headroom=-0.2)
        elif before == "full":
            self.fleet.clear()
        self._withdraw()

    def _withdraw(self) -> None:
        """Withdraw what was written; reports of running brokers come again by themselves."""
        for topic, key, partition in self._written:
            self.operator.write(key, None, topic, partition=partition)
        self._written.clear()
        self._report_down(full=self._stage in _OF_DOWN)
        self._await_read()
        self.fleet.await_decided("PAUSE" if self._stage in (*_OF_DOWN, "full") else "OPEN")

    def _healthy(self, write: Write, attacker: Attacker) -> str:
        if not self._strayed("OPEN", OTHERS, write, attacker):
            return "nothing"
        return "own" if self._quarantine_answers(write, attacker) else "held"

    def _quarantine_answers(self, write: Write, attacker: Attacker) -> bool:
        key = f"quarantine/{OWN}"
        self.operator.write(key, order(), ORDERS_TOPIC)
        self._written.add((ORDERS_TOPIC, key, 0))
        self._await_read()
        return self._at(OTHERS) == {"OPEN"} and not self._strayed("OPEN", OTHERS, write, attacker)

    def _full(self, write: Write, attacker: Attacker) -> str:
        marks = self.fleet.marks()
        released = self._strayed("PAUSE", (OWN, 2), write, attacker)
        victim = self.fleet.agents[VICTIM]
        assert set(victim.states_told(marks[VICTIM])) <= {"PAUSE"}, "a broker obeys its own disks"
        return "released" if released else "nothing"

    def _down(self, write: Write, attacker: Attacker) -> str:
        return "released" if self._strayed("PAUSE", OTHERS, write, attacker) else "nothing"

    def _ordered(self, write: Write, attacker: Attacker) -> str:
        if not self._strayed("OPEN", OTHERS, write, attacker):
            return "nothing"
        authors = {agent.decision["hold"]["actor"] for agent in self.fleet.of(OTHERS) if agent.decision}
        return "held" if TYPED in authors else "named"

    def _planned(self, write: Write, attacker: Attacker) -> str:
        self._attack(write, attacker)
        brokers = json.loads(self.fleet.agents[2].order("status", "--json"))["brokers"]
        planned = {one["broker_id"] for one in brokers if one["maintenance"] is not None}
        return "hidden" if planned else "nothing"

    def _silent(self, write: Write, attacker: Attacker) -> str:
        def goes_on() -> bool:
            write(attacker)
            attacker.flush()
            return self._at((2,)) != {"OPEN"}

        with self._soon_stale((OWN, 2)):
            self.fleet.agents[VICTIM].kill()
            with suppress(AssertionError):
                eventually(goes_on, timeout_seconds=SOON_STALE_SECONDS + 10)
            return "hidden" if self._at((2,)) == {"OPEN"} else "nothing"

    def _released(self, write: Write, attacker: Attacker) -> str:
        self.operator.write("hold", hold("pause"), ORDERS_TOPIC)
        self.fleet.await_decided("PAUSE")
        self.operator.write("hold", None, ORDERS_TOPIC)
        self.fleet.await_decided("OPEN")
        if self._strayed("OPEN", OTHERS, write, attacker):
            return "held"
        self._compact(ORDERS_TOPIC, lambda: len(attacker.orders("hold")) == 1)
        agent = self.fleet.agents[2]
        agent.stop()
        _start(agent)
        self._await_read()
        return "held" if agent.decision and agent.decision["hold"] else "nothing"

    def _silenced(self, write: Write, attacker: Attacker) -> str:
        with self._soon_stale(OTHERS):
            self._attack(write, attacker)
            with suppress(AssertionError):
                eventually(lambda: self._at((2,)) != {"OPEN"}, timeout_seconds=SOON_STALE_SECONDS + 10)
            if self._at((2,)) == {"OPEN"}:
                return "nothing"
            return "own" if self._quarantine_answers(write, attacker) else "held"

    def _compacted(self, write: Write, attacker: Attacker) -> str:
        self._attack(write, attacker)
        self._compact(USAGE_TOPIC, self._is_report_of_down_gone)
        agent = self.fleet.agents[2]
        agent.stop()
        mark = _start(agent)
        with suppress(AssertionError):
            eventually(lambda: "OPEN" in agent.states_told(mark), timeout_seconds=10)
        return "missed" if agent.state == "OPEN" else "nothing"

    def _strayed(self, state: str, ids: Iterable[int], write: Write, attacker: Attacker) -> bool:
        """Whether one of these agents has decided anything else since the attack."""
        marks = self.fleet.marks()
        self._attack(write, attacker)
        return any(set(one.states_told(marks[one.broker_id])) - {state} for one in self.fleet.of(ids))

    def _attack(self, write: Write, attacker: Attacker) -> None:
        write(attacker)
        attacker.flush()
        self._await_read()

    def _await_read(self) -> None:
        """Wait until all agents have read all that is in the topics by now, and have decided.

        The journal has an order behind the decision of its cycle, unless the topic is just read again.
        """
        agents = [agent for agent in self.fleet.of() if agent.process.running()]

        def have_read() -> bool:
            marks = {agent: agent.journal_mark() for agent in agents}
            ends = [self._end(topic, i) for topic, count in PARTITIONS.items() for i in range(count)]
            self.operator.flush()
            with suppress(AssertionError):
                return bool(
                    eventually(
                        lambda: all(agent.told(end, marks[agent]) for agent in agents for end in ends),
                        timeout_seconds=10,
                    )
                )
            return False

        eventually(have_read, "all agents have read the topics")

    def _end(self, topic: str, partition: int) -> str:
        """Write the end of an order that never was, and return what journals say of it."""
        number = next(
            one
            for one in self._numbers
            if partition_of(f"maintenance/{one}".encode(), PARTITIONS[topic]) == partition
        )
        self.operator.write(f"maintenance/{number}", None, topic)
        if topic == ORDERS_TOPIC:
            return f"the maintenance of broker {number} was ended"
        return wrong_topic_sentence(f"maintenance/{number}")

    def _at(self, ids: Iterable[int]) -> set[str | None]:
        return {agent.state for agent in self.fleet.of(ids)}

    @contextmanager
    def _soon_stale(self, ids: Iterable[int]) -> Iterator[None]:
        observers = self.fleet.of(ids)
        before = observers[0].settings["staleness_seconds"]
        for agent in observers:
            agent.reload(staleness_seconds=SOON_STALE_SECONDS)
        yield
        for agent in observers:
            agent.reload(staleness_seconds=before)

    def _report_down(self, *, full: bool) -> None:
        """Report for the broker that is down, as its agent."""
        self.down.write(str(DOWN), self.down.report(VICTIM, full=full, InstanceId="of a broker that is down"))
        self.down.flush()

    def _delete_topics(self) -> None:
        for agent in self.fleet.of():
            agent.stop()
        admin = admin_client(self.fleet.cluster.client_configuration(ADMINISTRATOR))
        for deleted in admin.delete_topics(list(PARTITIONS)).values():
            deleted.result(timeout=60)
        eventually(lambda: not PARTITIONS.keys() & admin.list_topics(timeout=60).topics.keys())
        self.fleet.read_anew()

    def _is_report_of_down_gone(self) -> bool:
        key = str(DOWN).encode()
        reports = [one for one in self.fleet.records() if one.key() == key]
        return not any(b"SnapshotAt" in (one.value() or b"") for one in reports)

    def _compact(self, topic: str, is_done: Callable[[], bool]) -> None:
        """Have the brokers compact a topic at once, until the attacker's record has taken another's place."""

        def compacted() -> bool:
            for partition in range(PARTITIONS[topic]):
                self._end(topic, partition)  # only a segment after which there is another one is compacted
            self.operator.flush()
            self.fleet.read_anew()
            return is_done()

        self._roll_segments(topic, "500", "0.001")
        try:
            eventually(compacted, "what was there is compacted away", timeout_seconds=120)
        finally:
            self._roll_segments(topic, _SEGMENT_MS[topic], "0.1")

    def _roll_segments(self, topic: str, milliseconds: str, dirty_ratio: str) -> None:
        admin = admin_client(self.fleet.cluster.client_configuration(ADMINISTRATOR))
        settings = {"segment.ms": milliseconds, "min.cleanable.dirty.ratio": dirty_ratio}
        changes = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
        admin.incremental_alter_configs([resource])[resource].result(timeout=30)


def _start(agent: AgentProcess) -> int:
    """Start an agent, and wait for its first decision; return where its journal was."""
    mark = agent.journal_mark()
    agent.start()
    eventually(lambda: agent.states_told(mark), f"{agent} has decided")
    return mark
