"""The readers of foreign input, and their properties for any input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from kquota.disks.mountinfo import parse_mountinfo
from kquota.disks.server_properties import BrokerPropertiesError, parse_broker_properties
from kquota.formats.decision_reading import read_decision_document
from kquota.formats.records import read_event
from kquota.formats.sentences import decision_sentence
from kquota.formats.status import status_document
from kquota.formats.strict_json import InvalidJson, parse_json
from kquota.guard.applied_state import parse_applied_state
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import decision_document
from kquota.policy.events import UsageEvent
from kquota.policy.view import ClusterView
from kquota.settings.load import load_text
from kquota.settings.problems import SettingsError
from tests.unit.policy.golden import samples

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 11, 20, 10, 16, tzinfo=UTC)
PROPERTIES = Path("server.properties")
R = TypeVar("R")
E = TypeVar("E", bound=Exception)
KEYS = (b"1", b"hold", b"quarantine/1", b"maintenance/2")


@dataclass(frozen=True)
class Target:
    """A reader, good and bad samples to begin from, and how many of them are tried in `make test`."""

    name: str
    read: Callable[[bytes], None]
    corpus: Callable[[], tuple[bytes, ...]]
    examples: int


def read_record(value: bytes) -> None:
    """A value of the usage topic under any key: never an exception, and what it leads to can be shown."""
    view = ClusterView(timedelta(seconds=30))
    for key in KEYS:
        event = read_event(key, value)
        view.fold(event, NOW)
        if isinstance(event, UsageEvent):
            assert all(v.name.isprintable() for v in event.record.volumes)
            assert all(0 <= v.consumed_bytes <= v.capacity_bytes for v in event.record.volumes)
    situation = Situation(frozenset({1, 2}))
    decision = decide(view, situation, PolicySettings(), NOW)
    assert decision_sentence(decision).isprintable()
    document = decision_document(decision)
    assert read_decision_document(json.loads(json.dumps(document, allow_nan=False))).state is decision.state
    json.dumps(
        status_document(view, situation, decision, NOW, release_margin=Fraction(1, 10)), allow_nan=False
    )


def read_properties(content: bytes) -> None:
    """server.properties: an answer, or the one error that describes the defect in a line."""
    found = _read_or_refused(lambda: parse_broker_properties(content, PROPERTIES), BrokerPropertiesError)
    if isinstance(found, BrokerPropertiesError):
        assert str(found).startswith(f"{PROPERTIES}: ")
        assert len(str(found)) < 4000
    else:
        assert found.node_id >= 0
        assert found.directories


def read_mounts(content: bytes) -> None:
    """The mount table: mounts, or the line that the kernel can't have written."""
    text = content.decode("utf-8", "surrogateescape")
    found = _read_or_refused(lambda: parse_mountinfo(text), ValueError)
    if isinstance(found, ValueError):
        assert str(found).startswith("not a line of mountinfo: ")
    else:
        assert len(found.mounts) == sum(1 for line in text.split("\n") if line)


def read_configuration(content: bytes) -> None:
    """agent.yml: settings, or problems that each name a key or the file."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return  # the file's own reader reports it
    found = _read_or_refused(lambda: load_text(text, Path("agent.yml"), {}), SettingsError)
    if isinstance(found, SettingsError):
        assert found.problems
        assert all("agent.yml" in str(problem) for problem in found.problems)


def read_files(content: bytes) -> None:
    """The decision and the applied-state file: a value, or one error with a reason."""
    try:
        document = parse_json(content)
    except InvalidJson:
        return
    if not isinstance(document, dict):
        return
    for read in (read_decision_document, parse_applied_state):
        found = _read_or_refused(partial(read, document), ValueError)
        assert not isinstance(found, ValueError) or str(found), "a refusal says why"


def _read_or_refused(read: Callable[[], R], refusal: type[E]) -> R | E:
    try:
        return read()
    except refusal as error:
        return error


def _samples(*folders: str) -> tuple[bytes, ...]:
    found = [samples(folder, verdict) for folder in folders for verdict in ("valid", "invalid")]
    return tuple(one.text.encode() for some in found for one in some)


@cache
def _records() -> tuple[bytes, ...]:
    return _samples("usage", "operator")


@cache
def _files() -> tuple[bytes, ...]:
    return _samples("decision", "applied")


def _properties() -> tuple[bytes, ...]:
    return (
        b"node.id=1\nprocess.roles=broker,controller\nlog.dirs=/data/1,/data/2\nmetadata.log.dir=/meta\n",
        b"broker.id : 7\nlog.dir=/var/lib/kafka\n",
        b"# a comment\nnode.id = 3\nlog.dirs = /a,\\\n  /b\nlisteners=PLAINTEXT://:9092\n",
    )


def _mounts() -> tuple[bytes, ...]:
    return (
        b"22 28 0:20 / /sys rw,nosuid,nodev shared:7 - sysfs sysfs rw\n"
        b"30 28 0:26 / /run rw,nosuid shared:5 - tmpfs  rw,size=1g,mode=755\n",
        b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n",
        b"29 1 8:1 / /data/1 ro shared:1 - xfs /dev/sdb1 rw,shutdown\n",
    )


def _configurations() -> tuple[bytes, ...]:
    return (
        (ROOT / "packaging/agent.yml.example").read_bytes(),
        b"broker: {server_properties: /etc/kafka/server.properties}\nkafka: {bootstrap.servers: 'a:9093'}\n"
        b"limits:\n  hard: {type: MinFreePercentage, level: 5}\n"
        b"  soft: {type: MinFreePercentage, level: 15}\n",
    )


TARGETS = (
    Target("record", read_record, _records, 1500),
    Target("server-properties", read_properties, _properties, 1500),
    Target("mountinfo", read_mounts, _mounts, 500),
    Target("configuration", read_configuration, _configurations, 60),
    Target("files", read_files, _files, 1500),
)
