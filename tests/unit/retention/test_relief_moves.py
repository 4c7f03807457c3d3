"""Options that move replicas off a full volume: which ones, where to, and with which promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kquota.disks.segments import PartitionOnDisk, PartitionState
from kquota.retention.expiry import DAY_MS, HOUR_MS, MINUTE_MS
from kquota.retention.relief import Elsewhere, Option, Situation, Step, StepKind, Target
from kquota.retention.relief_moves import (
    MOST_MOVES,
    brokers_of,
    name_of,
    place_of,
    reassignment,
    replayed,
)
from kquota.retention.relief_options import ranked
from tests.unit.policy.clusters import bounded
from tests.unit.retention.test_relief import NOW, WEEK, ages, daily, partition, situation

COPY_BYTES_PER_SECOND = 10
FOREVER = replace(WEEK, retention_ms=None)


def crowded(
    *partitions: PartitionOnDisk, to_free_bytes: int, rooms: tuple[int, ...] = (10_000,), **other: object
) -> Situation:
    """Return a full volume whose topics keep all, and other log dirs with so much room."""
    base = situation(
        *partitions, to_free_bytes=to_free_bytes, rules={one.topic: FOREVER for one in partitions}
    )
    targets = [Target(f"/data/{number}", room) for number, room in enumerate(rooms, start=2)]
    return replace(base, targets=targets, copy_bytes_per_second=COPY_BYTES_PER_SECOND, **other)  # type: ignore[arg-type]


def replica(name: str, size_bytes: int) -> PartitionOnDisk:
    topic, number = place_of(name)
    return partition(topic, HOUR_MS, size_bytes=size_bytes, number=number)


def moves(base: Situation) -> Option | None:
    return next((one for one in ranked(base) if one.kind is StepKind.LOGDIR_MOVE), None)


def chosen(base: Situation) -> list[tuple[str, str | None]]:
    option = moves(base)
    return [] if option is None else [(step.target, step.destination) for step in option.steps]


@pytest.mark.accepts("G15")
def test_the_smallest_replica_that_is_enough_is_moved_and_nothing_is_lost() -> None:
    base = crowded(replica("a-0", 500), replica("b-7", 300), replica("c-0", 200), to_free_bytes=250)
    option = ranked(base)[0]
    (step,) = option.steps
    assert (step.kind, step.target, step.source, step.destination) == (
        *(StepKind.LOGDIR_MOVE, "b-7", "/data/1", "/data/2"),
    )
    assert (step.frees_bytes, option.enough, step.keeps_ratio) == (300, True, 1.0)
    assert step.by_ms == NOW + 30_000 + MINUTE_MS, "300 bytes at 10 a second, and the delay of the deletion"


def test_where_none_is_enough_the_largest_goes_first_and_the_last_is_no_larger_than_needed() -> None:
    base = crowded(
        *(replica("a-0", 500), replica("b-0", 400), replica("c-0", 300), replica("d-0", 100)),
        to_free_bytes=780,
    )
    assert chosen(base) == [("a-0", "/data/2"), ("c-0", "/data/2")]


def test_a_replica_goes_where_most_room_is_and_only_where_all_of_it_fits() -> None:
    two = (replica("a-0", 500), replica("b-0", 400))
    assert chosen(crowded(*two, to_free_bytes=900, rooms=(450, 600))) == [
        ("a-0", "/data/3"),
        ("b-0", "/data/2"),
    ]
    base = crowded(*two, to_free_bytes=900, rooms=(499, 99))
    assert chosen(base) == [("b-0", "/data/2")]
    option = moves(base)
    assert option is not None
    assert not option.enough
    assert chosen(crowded(*two, to_free_bytes=900, rooms=(0, -50))) == []
    assert chosen(crowded(*two, to_free_bytes=900, rooms=())) == []


@pytest.mark.accepts("G16")
def test_internal_and_protected_topics_and_replicas_that_others_move_stay() -> None:
    def of(state: PartitionState, name: str = "v-0") -> PartitionOnDisk:
        return replace(replica(name, 500), state=state)

    for one in (replica("__consumer_offsets-3", 500), replica("pay-0", 500), replica("audit.eu-0", 500)):
        assert chosen(crowded(one, to_free_bytes=100, protected=("pay", "audit.*"))) == []
    for state in (PartitionState.FUTURE, PartitionState.STRAY, PartitionState.DELETED):
        assert chosen(crowded(of(state), to_free_bytes=100)) == []
    assert chosen(crowded(of(PartitionState.LOG), of(PartitionState.FUTURE), to_free_bytes=100)) == []
    assert chosen(crowded(of(PartitionState.LOG), to_free_bytes=100, busy={"v-0"})) == []
    assert chosen(crowded(of(PartitionState.LOG), to_free_bytes=100, busy={"v-1"})) != []
    assert chosen(replace(crowded(of(PartitionState.LOG), to_free_bytes=100), rules={})) == []


def test_compacted_topics_are_moved_too() -> None:
    base = crowded(replica("state-0", 500), to_free_bytes=100)
    compacted = replace(FOREVER, cleanup_delete=False, cleanup_compact=True)
    assert chosen(replace(base, rules={"state": compacted})) == [("state-0", "/data/2")]


def test_what_leaves_by_itself_meanwhile_is_no_merit_of_a_move() -> None:
    base = situation(daily("visits", 8), to_free_bytes=500)
    slow = moves(replace(base, targets=[Target("/data/2", 10_000)], copy_bytes_per_second=2))
    quick = moves(replace(base, targets=[Target("/data/2", 10_000)], copy_bytes_per_second=800))
    assert slow is not None
    assert quick is not None
    assert (quick.by_ms - NOW, quick.frees_bytes) == (1000 + MINUTE_MS, 800)
    assert (slow.by_ms - NOW, slow.frees_bytes) == (400_000 + MINUTE_MS, 700), (
        "the oldest day has left by then"
    )


def test_replicas_that_are_as_good_as_empty_stay() -> None:
    empty = [replica(f"a-{n}", 9) for n in range(10)]
    base = crowded(*empty, replica("b-0", 60_000), to_free_bytes=100_000, rooms=(1_000_000,))
    assert chosen(base) == [("b-0", "/data/2")]
    assert moves(crowded(*empty, to_free_bytes=100_000, rooms=(1_000_000,))) is None


def test_many_small_replicas_are_no_option_without_end() -> None:
    option = moves(crowded(*(replica(f"a-{n}", 10) for n in range(MOST_MOVES + 20)), to_free_bytes=5000))
    assert option is not None
    assert (len(option.steps), option.enough) == (MOST_MOVES, False)


def test_a_plan_is_played_on_what_is_there_now() -> None:
    base = crowded(replica("a-0", 500), replica("b-0", 400), to_free_bytes=900)
    option = moves(base)
    assert option is not None
    assert replayed(base, option.steps) == option
    gone = replayed(replace(base, partitions=base.partitions[:1]), option.steps)
    assert ([step.frees_bytes for step in gone.steps], gone.enough) == ([500, 0], False)
    no_room = replayed(replace(base, targets=[Target("/data/2", 899)]), option.steps)
    assert [step.frees_bytes for step in no_room.steps] == [500, 0]
    assert [step.frees_bytes for step in replayed(replace(base, protected=("a",)), option.steps).steps] == [
        0,
        400,
    ]
    elsewhere = [replace(step, destination="/data/9") for step in option.steps]
    assert replayed(base, elsewhere).frees_bytes == 0


def test_plans_of_settings_are_played_as_before() -> None:
    base = situation(daily("visits"))
    (option,) = ranked(base)
    assert replayed(base, option.steps) == option


@pytest.mark.parametrize("name", ["visits", "-3", "visits-", "visits-x", "visits-²"])
def test_a_text_that_names_no_partition_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        place_of(name)


def test_a_partition_has_the_name_that_kafka_gives_it() -> None:
    assert place_of(name_of(replica("a-b-12", 1))) == ("a-b", 12)


def test_only_the_copy_of_this_broker_moves() -> None:
    kind = StepKind.LOGDIR_MOVE
    assert reassignment(kind, {"a-b-7": "/data/2"}, {"a-b-7": [4, 3, 9]}, 3) == {
        "version": 1,
        "partitions": [
            {"topic": "a-b", "partition": 7, "replicas": [4, 3, 9], "log_dirs": ["any", "/data/2", "any"]}
        ],
    }
    for brokers in ({"a-b-7": [4, 9]}, {}):
        with pytest.raises(ValueError, match="a-b-7"):
            reassignment(kind, {"a-b-7": "/data/2"}, brokers, 3)


# --- Other brokers


def spread(
    *partitions: PartitionOnDisk, to_free_bytes: int, rooms: Mapping[int, int], **other: object
) -> Situation:
    """Return a full volume of broker 1, whose partitions are on brokers 1 to 3, each in its own rack."""
    elsewhere = Elsewhere(
        broker_id=1,
        room_bytes=rooms,
        replicas={name_of(one): [2, 1, 3] for one in partitions},
        racks={1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "d"},
    )
    base = crowded(*partitions, to_free_bytes=to_free_bytes, rooms=())
    compacted = replace(FOREVER, cleanup_delete=False, cleanup_compact=True)
    base = replace(base, rules=dict.fromkeys(base.rules, compacted))  # so that moves are the only options
    return replace(base, elsewhere=replace(elsewhere, **other))  # type: ignore[arg-type]


def taken_over(base: Situation) -> list[tuple[str, str | None, str | None]]:
    option = next((one for one in ranked(base) if one.kind is StepKind.REPLICA_MOVE), None)
    return [] if option is None else [(step.target, step.source, step.destination) for step in option.steps]


def test_another_broker_takes_over_a_replica_at_the_same_place() -> None:
    base = spread(replica("a-0", 500), replica("b-0", 300), to_free_bytes=250, rooms={4: 1000})
    assert taken_over(base) == [("b-0", "2,1,3", "2,4,3")]
    (option,) = ranked(base)
    assert (option.enough, option.frees_bytes, option.steps[0].setting) == (True, 300, "replicas")
    assert replayed(base, option.steps) == option


def test_no_broker_gets_a_second_replica_and_no_rack_is_lost() -> None:
    one = replica("a-0", 500)
    for room, expected in (
        ({2: 1000, 3: 1000}, []),  # they have it already
        ({5: 1000}, []),  # its rack is that of broker 2
        ({5: 1000, 6: 600}, [("a-0", "2,1,3", "2,6,3")]),  # another rack is as good
        ({4: 499}, []),
        ({6: 700, 4: 800}, [("a-0", "2,1,3", "2,4,3")]),
    ):
        assert taken_over(spread(one, to_free_bytes=100, rooms=room)) == expected
    no_racks = {1: None, 2: None, 3: None, 5: None}
    assert taken_over(spread(one, to_free_bytes=100, rooms={5: 1000}, racks=no_racks)) != []
    assert taken_over(spread(one, to_free_bytes=100, rooms={4: 1000}, replicas={})) == []
    assert taken_over(spread(one, to_free_bytes=100, rooms={4: 1000}, replicas={"a-0": [2, 3]})) == []


def test_other_brokers_are_offered_only_where_other_log_dirs_are_not_enough() -> None:
    base = spread(replica("a-0", 500), replica("b-0", 300), to_free_bytes=600, rooms={4: 1000})
    enough, too_little = ([Target("/data/2", room)] for room in (800, 400))
    assert [one.kind for one in ranked(replace(base, targets=enough))] == [StepKind.LOGDIR_MOVE]
    assert [(one.kind, one.enough) for one in ranked(replace(base, targets=too_little))] == [
        (StepKind.REPLICA_MOVE, True),
        (StepKind.LOGDIR_MOVE, False),
    ]


def test_a_plan_of_replicas_is_played_on_the_brokers_as_they_are_now() -> None:
    base = spread(replica("a-0", 500), to_free_bytes=100, rooms={4: 1000})
    (option,) = ranked(base)

    def frees(**changed: object) -> int:
        now = spread(replica("a-0", 500), to_free_bytes=100, rooms={4: 1000}, **changed)
        return replayed(now, option.steps).frees_bytes

    assert frees() == 500
    assert frees(room_bytes={4: 499}) == 0
    assert frees(room_bytes={6: 1000}) == 0
    assert frees(replicas={"a-0": [1, 2, 3]}) == 0, "others have changed the brokers"
    assert replayed(replace(base, elsewhere=None), option.steps).frees_bytes == 0


def test_the_file_of_a_reassignment_has_the_brokers() -> None:
    assert reassignment(StepKind.REPLICA_MOVE, {"a-b-7": "4,2"}, {}, 3) == {
        "version": 1,
        "partitions": [{"topic": "a-b", "partition": 7, "replicas": [4, 2]}],
    }


@pytest.mark.accepts("G15", "G16")
@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=6),
    rooms=st.dictionaries(st.integers(2, 8), st.integers(-50, 900)),
    present=st.lists(st.permutations(range(1, 9)).map(lambda ids: ids[:3]), min_size=6, max_size=6),
    racks=st.dictionaries(st.integers(1, 8), st.sampled_from("abc")),
    to_free_bytes=st.integers(1, 1500),
)
@bounded(200)
def test_moves_to_brokers_respect_racks_rooms_and_replicas(
    sizes: list[int],
    rooms: dict[int, int],
    present: list[list[int]],
    racks: dict[int, str],
    to_free_bytes: int,
) -> None:
    found = [replica(f"a-{number}", size) for number, size in enumerate(sizes)]
    replicas = {name_of(one): brokers for one, brokers in zip(found, present, strict=False)}
    base = spread(*found, to_free_bytes=to_free_bytes, rooms=rooms, replicas=replicas, racks=racks)
    option = next(iter(ranked(base)), None)
    if option is None:
        return
    taken = Counter[int]()
    for step in option.steps:
        before, after = (brokers_of(text or "") for text in (step.source, step.destination))
        assert before == replicas[step.target]
        (new,) = set(after) - set(before)
        assert [1 if one == new else one for one in after] == before, "the broker takes this one's place"
        assert len({racks.get(one) for one in after}) >= len({racks.get(one) for one in before})
        taken[new] += sizes[place_of(step.target)[1]]
    assert all(size <= rooms[broker_id] for broker_id, size in taken.items())
    assert len({step.target for step in option.steps}) == len(option.steps)
    assert option.enough == (option.frees_bytes >= to_free_bytes)


# --- Laws

replicas = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "pay", "__x"]), ages, st.integers(1, 400), st.sampled_from(PartitionState)
    ),
    min_size=1,
    max_size=8,
).map(
    lambda found: [
        replace(partition(topic, *of, size_bytes=size, number=number), state=state)
        for number, (topic, of, size, state) in enumerate(found)
    ]
)


@pytest.mark.accepts("G15", "G16")
@given(
    found=replicas,
    to_free_bytes=st.integers(1, 3000),
    rooms=st.lists(st.integers(-50, 1500), max_size=3).map(tuple),
    rate=st.integers(1, 1000),
    flows=st.booleans(),
    keeps_all=st.booleans(),
)
@bounded(200)
def test_moves_keep_every_target_below_its_limit_and_are_enough_or_said_not_to_be(
    found: list[PartitionOnDisk],
    to_free_bytes: int,
    rooms: tuple[int, ...],
    rate: int,
    flows: bool,
    keeps_all: bool,
) -> None:
    base = crowded(
        *found,
        to_free_bytes=to_free_bytes,
        rooms=rooms,
        protected=("pay",),
        busy={"a-1"},
    )
    base = replace(base, copy_bytes_per_second=rate, flows=flows)
    if not keeps_all:
        base = replace(base, rules=dict.fromkeys(base.rules, WEEK))
    option = moves(base)
    if option is None:
        return
    sizes = {name_of(one): one for one in found if one.state is PartitionState.LOG}
    taken = Counter[str]()
    for step in option.steps:
        assert step.source == "/data/1"
        taken[step.destination or ""] += sizes[step.target].size_bytes
        assert place_of(step.target)[0] in ("a", "b")
        assert step.target != "a-1"
    for number, room in enumerate(rooms, start=2):
        assert taken[f"/data/{number}"] <= max(room, 0)
    assert len({step.target for step in option.steps}) == len(option.steps)
    assert option.enough == (option.frees_bytes + base.leaving_anyway(option.by_ms) >= to_free_bytes)
    copied = sum(sizes[step.target].size_bytes for step in option.steps)
    assert option.by_ms >= NOW + copied * 1000 // rate + MINUTE_MS
    again = replayed(base, option.steps)
    assert again.by_ms <= option.by_ms
    assert [step.frees_bytes > 0 for step in again.steps] == [True] * len(again.steps)
    if option.enough:
        without_last = Option(option.steps[:-1], enough=False) if len(option.steps) > 1 else None
        rest = 0 if without_last is None else without_last.frees_bytes
        assert rest + base.leaving_anyway(option.by_ms) < to_free_bytes, "no move more than needed"
    elif len(option.steps) < MOST_MOVES:
        left = [
            one
            for name, one in sizes.items()
            if one.topic in ("a", "b")
            and name != "a-1"
            and name not in {step.target for step in option.steps}
        ]
        most_room = max(room - taken[f"/data/{number}"] for number, room in enumerate(rooms, start=2))
        freed = {name_of(one): _alone(base, one, option.by_ms) for one in left}
        assert all(one.size_bytes > most_room or freed[name_of(one)] <= 0 for one in left)


def _alone(base: Situation, one: PartitionOnDisk, by_ms: int) -> int:
    """Return what a replica has beyond what leaves it by then."""
    only = replace(base, partitions=[one], rules={one.topic: base.rules[one.topic]})
    return one.size_bytes - only.leaving_anyway(by_ms)


def test_a_step_of_another_kind_is_not_a_move() -> None:
    base = crowded(replica("a-0", 500), to_free_bytes=100)
    step = Step(StepKind.WAIT, "", 100, NOW + DAY_MS)
    assert replayed(base, [step]).steps == (step,)
