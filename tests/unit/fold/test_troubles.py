"""What keeps a reader from reading, and when it is told."""

from __future__ import annotations

from kquota.fold.troubles import Source, Troubles
from kquota.kafka.errors import KafkaFailure, Kind

DOWN = KafkaFailure(Kind.UNREACHABLE, "down")
DENIED = KafkaFailure(Kind.ACL_DENIED, "denied")


def test_a_lasting_failure_is_told_once_a_second() -> None:
    troubles = Troubles()
    told = [troubles.failed(Source.FETCH, DENIED, 100 + tenth / 10) for tenth in range(25)]
    assert [number for number, yes in enumerate(told) if yes] == [0, 10, 20]
    assert troubles.failed(Source.FETCH, DOWN, 102.5), "another failure is told at once"


def test_each_source_ends_by_itself_and_the_last_one_is_the_recovery() -> None:
    troubles = Troubles()
    troubles.failed(Source.DESCRIBE, DENIED, 1)
    troubles.failed(Source.CONNECTION, DOWN, 2)
    assert Source.CONNECTION in troubles
    assert not troubles.succeeded(Source.FETCH, Source.CONNECTION)
    assert Source.DESCRIBE in troubles
    assert Source.CONNECTION not in troubles
    assert troubles.succeeded(Source.DESCRIBE)
    assert not troubles.succeeded(Source.DESCRIBE)
