"""Revoked certificates: what they have signed counts no more, as if it had never been."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.formats.records import TopicKind, TopicRecord
from kquota.formats.sentences import decision_sentence
from kquota.formats.signature_headers import REPORTS_TOLERANCE_MS, next_counter
from kquota.formats.status import status_document
from kquota.formats.topic_replay import TopicReplay
from kquota.policy.decide import PolicySettings, Situation, decide
from kquota.policy.decision import FallbackAction, State
from kquota.policy.events import BrokerOrder, Refusal, RefusedEvent
from kquota.policy.view import ClusterView, FoldResult, NoRecord
from tests.unit.policy.clusters import bounded
from tests.unit.policy.readings import counts, read, value
from tests.unit.policy.readings import reading as signed_reading
from tests.unit.policy.signers import (
    CLUSTER,
    NOW_MS,
    ORDERS_TOPIC,
    Authorities,
    Signer,
    agent,
    operator,
    verifier,
)
from tests.unit.policy.situations import NOW, STALENESS, TOLERANCE, order, raw

STOLEN, RENEWED, OTHER = agent(7), agent(7, not_before_ms=1), agent(8)
THIEF, JANE = operator("thief"), operator("jane")
KEY = b"7"


def reading(authorities: Authorities) -> TopicReplay:
    found = signed_reading(authorities=authorities)
    assert not found.take_revocations(), "the list of the start needs no second reading"
    return found


@pytest.mark.accepts("G12")
@pytest.mark.parametrize("backlog", [False, True])
def test_a_record_of_a_revoked_certificate_is_refused(backlog: bool) -> None:
    authorities = Authorities()
    authorities.revoke(STOLEN)
    found = reading(authorities)
    records = [STOLEN.record(KEY, value(50)), OTHER.record(b"8", value(40))]
    assert found.read(records[:1], NOW, backlog=backlog) == [RefusedEvent("7", Refusal.REVOKED)]
    assert read(found, records, backlog=backlog) == [FoldResult.REFUSED, FoldResult.USAGE]
    assert counts(found.view) is NoRecord.REVOKED


@pytest.mark.accepts("G12")
def test_what_a_revoked_certificate_has_signed_counts_no_more_at_once() -> None:
    authorities = Authorities()
    found = reading(authorities)
    read(found, [STOLEN.record(KEY, value(50)), OTHER.record(b"8", value(40))])
    authorities.revoke(STOLEN)
    assert found.take_revocations()
    assert not found.take_revocations()
    assert (counts(found.view), counts(found.view, 8)) == (NoRecord.REVOKED, 40)
    read(found, [RENEWED.record(KEY, value(30), NOW_MS + 1)])
    assert counts(found.view) == 30


def test_a_record_that_its_broker_has_signed_with_its_next_certificate_stays() -> None:
    authorities = Authorities()
    found = reading(authorities)
    read(found, [STOLEN.record(KEY, value(5, "thief"), NOW_MS), RENEWED.record(KEY, value(30), NOW_MS + 1)])
    assert [one.instance_id for one in found.view.others_of(7, NOW)] == ["thief"]
    authorities.revoke(STOLEN)
    found.take_revocations()
    assert counts(found.view) == 30
    assert found.view.others_of(7, NOW) == []


@pytest.mark.accepts("G12")
def test_orders_of_a_revoked_certificate_end_at_once_and_leave_no_word_on_their_keys() -> None:
    authorities = Authorities()
    orders = TopicReplay(TOLERANCE, verifier(authorities=authorities, topic=ORDERS_TOPIC))
    usages = TopicReplay(TOLERANCE, verifier(authorities=authorities))
    for one in (orders, usages):
        one.know(CLUSTER, frozenset({7, 8}))
        assert not one.take_revocations()
    of_orders = partial(THIEF.record, topic=TopicKind.ORDERS)
    read(usages, [OTHER.record(b"8", value(40))])
    given = [
        of_orders(b"hold", raw(order(Action="pause"))),
        of_orders(b"quarantine/7", raw(order())),
        JANE.record(b"quarantine/8", raw(order()), topic=TopicKind.ORDERS),
        of_orders(b"decommission/8", raw({"Reason": "gone", "Actor": "thief"})),
        JANE.record(b"maintenance/7", raw(order()), topic=TopicKind.ORDERS),
    ]
    assert read(orders, given) == [FoldResult.OPERATOR] * 5
    view = usages.view_with(orders)
    assert (held_at(view), counts(view, 8)) == ("pause", NoRecord.TOMBSTONE)
    authorities.revoke(THIEF)
    assert (orders.take_revocations(), usages.take_revocations()) == (True, True)
    view = usages.view_with(orders)
    assert (held_at(view), counts(view, 8)) == (None, 40), "as if there had been no word"
    assert view.brokers_under(BrokerOrder.QUARANTINE, NOW) == {8}
    assert view.brokers_under(BrokerOrder.MAINTENANCE, NOW) == {7}


def test_a_revoked_agent_is_named_though_it_is_unknown_and_an_invented_broker_is_not() -> None:
    authorities = Authorities()
    authorities.revoke(STOLEN, invented := agent(999))
    found = reading(authorities)
    refused = [STOLEN.record(KEY, value(50)), invented.record(b"999", value(5))]
    assert read(found, refused) == [FoldResult.REFUSED] * 2
    assert (counts(found.view), counts(found.view, 999)) == (
        NoRecord.REVOKED,
        NoRecord.MISSING,
    )
    decision = decide(
        found.view, Situation(frozenset({7})), PolicySettings(FallbackAction.BOUNDED, STALENESS), NOW
    )
    assert decision.state is State.PAUSE
    assert "its signer's certificate is revoked" in decision_sentence(decision)
    (unknown,) = decision.undetermined
    assert unknown.cause.value == "revoked"
    document = status_document(
        found.view,
        Situation(frozenset({7})),
        decision,
        NOW,
        release_margin=Fraction(1, 10),
        cluster_id=CLUSTER,
    )
    assert "signs with another certificate" in str(document["what_ends_it"])


def test_while_the_topic_is_read_again_both_views_forget() -> None:
    authorities = Authorities()
    found = reading(authorities)
    records = [STOLEN.record(KEY, value(50)), THIEF.record(b"hold", raw(order(Action="open")))]
    read(found, records)
    found.begin_again(same_topic=True)
    read(found, records, backlog=True)
    authorities.revoke(STOLEN, THIEF)
    found.take_revocations()
    for _ in range(2):
        assert counts(found.view) is NoRecord.REVOKED
        assert found.view.hold_in_force(NOW) is None
        found.reached_end(NOW)


def test_a_thief_s_counter_does_not_keep_the_next_certificate_from_counting() -> None:
    authorities = Authorities()
    found = reading(authorities)
    assert found.verifier is not None
    far = NOW_MS + REPORTS_TOLERANCE_MS
    assert read(found, [STOLEN.record(KEY, value(5), far)]) == [FoldResult.USAGE]
    assert next_counter(NOW_MS, far, NOW_MS) == NOW_MS + 1, "its owner does not go on from it"
    assert next_counter(far, far, NOW_MS) == NOW_MS, "not after a restart either"
    last = NOW_MS + 1
    authorities.revoke(STOLEN)
    found.take_revocations()
    assert read(found, [RENEWED.record(KEY, value(30), last)]) == [FoldResult.USAGE]


def test_what_was_revoked_by_mistake_counts_again_when_the_topic_was_read_again() -> None:
    authorities = Authorities()
    authorities.revoke(STOLEN)
    found = reading(authorities)
    records = [STOLEN.record(KEY, value(50))]
    read(found, records)
    authorities.revoke()
    assert found.take_revocations()
    found.begin_again(same_topic=True)
    read(found, records, backlog=True)
    found.reached_end(NOW)
    assert counts(found.view) == 50


def held_at(view: ClusterView) -> str | None:
    hold = view.hold_in_force(NOW)
    return None if hold is None else hold.action.value


WRITTEN = st.one_of(
    st.builds(
        lambda signer, gigabytes, counter, instance: signer.record(
            KEY, value(gigabytes, instance), NOW_MS + counter
        ),
        st.sampled_from([STOLEN, RENEWED]),
        st.integers(0, 99),
        st.integers(0, 9),
        st.sampled_from("ab"),
    ),
    st.builds(
        lambda signer, key, withdrawn, counter: signer.record(
            key, None if withdrawn else raw(order(Action="open")), NOW_MS + counter
        ),
        st.sampled_from([THIEF, JANE]),
        st.sampled_from([KEY, b"hold", b"quarantine/7"]),
        st.booleans(),
        st.integers(0, 9),
    ),
).filter(lambda record: record.key != KEY or record.value is None or b"SnapshotAt" in record.value)


def known(found: TopicReplay) -> object:
    free = counts(found.view)
    return (
        None if isinstance(free, NoRecord) else free,
        found.view.hold_in_force(NOW),
        found.view.brokers_under(BrokerOrder.QUARANTINE, NOW),
    )


@given(records=st.lists(WRITTEN, max_size=12), revoked=st.sets(st.sampled_from([STOLEN, THIEF]), min_size=1))
@bounded(300)
def test_after_reading_again_the_view_is_that_of_an_agent_that_knew_the_list_from_the_start(
    records: list[TopicRecord], revoked: set[Signer]
) -> None:
    authorities = Authorities()
    found = reading(authorities)
    read(found, records)
    authorities.revoke(*revoked)
    found.take_revocations()
    gone = {signer.fingerprint for signer in revoked}
    histories = found.view.brokers.values()
    kept = [one for history in histories for one in (*history.records, *history.rivals.values())]
    assert not [one for one in kept if one.certificate in gone]
    found.begin_again(same_topic=True)
    read(found, records, backlog=True)
    found.reached_end(NOW)
    expected = reading(authorities)
    read(expected, records)
    assert known(found) == known(expected)
