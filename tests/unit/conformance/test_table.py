"""The table: what a row shows, and where a system is behind another one."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bench.harness.bench import REPOSITORY
from bench.harness.results import Saved
from conformance.figures import COLUMNS, MIB, Fill, Survival, behind
from conformance.log_dirs import errors_in
from conformance.page import page
from conformance.plan import FULL_BROKER, OTHERS, Plan
from conformance.systems import systems
from tests.unit.conformance.courses import ILL, WELL


def shown(row: Survival) -> dict[str, str]:
    return {column.name: column.shown(row) for column in COLUMNS}


def test_a_row_shows_bounds_where_something_did_not_happen_in_time() -> None:
    assert shown(ILL) == {
        "brokers lost": "1",
        "log dirs lost": "1",
        "records lost": "unreadable",
        "doubled": "unreadable",
        "given up": "0",
        "time to hold": "lost first",
        "overshoot": "32.0 MiB",
        "time to resume": "> 15 s",
        "whole again": "> 15 s",
        "needed from people": "a restart of each broker that was down or had lost a log dir",
        "others keep": "40 %",
        "consumer keeps": "not known",
    }
    assert shown(WELL)["time to hold"] == "0.2 s"
    assert shown(replace(WELL, held_seconds=None))["time to hold"] == "> 25 s"
    assert shown(WELL)["needed from people"] == "nothing"


def test_a_system_is_behind_only_by_more_than_the_noise_and_in_the_same_fill() -> None:
    assert behind([WELL, ILL], "one") == []
    assert [column.name for _, column in behind([WELL, ILL], "other")] == [
        column.name for column in COLUMNS if column.name != "given up"
    ]
    noisy = replace(WELL, system="noisy", held_seconds=0.4, collateral_share=0.97, overshoot_bytes=MIB + 1)
    assert behind([WELL, noisy], "noisy") == []
    elsewhere = replace(ILL, fill=Fill.LEADER)
    assert behind([WELL, elsewhere], "other") == []


def test_who_catches_up_is_no_better_than_who_keeps_the_rate() -> None:
    catching_up = replace(WELL, system="quick", collateral_share=1.4, consumer_share=1.2)
    assert behind([WELL, catching_up], "one") == []


def test_no_topic_of_the_others_has_a_replica_on_the_broker_that_fills() -> None:
    plan = Plan()
    for fill in Fill:
        for load in plan.loads:
            brokers = {broker for replicas in plan.replicas(load, fill) for broker in replicas}
            assert (FULL_BROKER in brokers) == (load.role != OTHERS)
            leaders = {replicas[0] for replicas in plan.replicas(load, fill)}
            assert (leaders == {FULL_BROKER}) == (load.role != OTHERS and fill is Fill.LEADER)


def test_the_page_names_what_was_not_tried_and_what_is_not_explained() -> None:
    rows = (replace(ILL, system="kquota"), replace(WELL, system="stock"))
    saved = [Saved(row.system, "2026-11-26T04:00:00+00:00", 90.0, 1.0, "a machine", (row,)) for row in rows]
    text = page(saved, systems(), Plan(), ["strimzi leader"])
    assert "Not yet tried: `strimzi leader`." in text
    assert "| time to hold | lost first | 0.2 s |" in text
    assert "## Remarks: where kquota is not the best" in text
    assert "Remarks: where stock" not in text


def test_the_tool_s_answer_has_an_error_for_each_log_dir_that_a_broker_gave_up() -> None:
    failed = '{"logDir":"/b","error":"KafkaStorageException","partitions":[]}'
    well = '{"logDir":"/a","error":null,"partitions":[]}'
    answer = f'Querying brokers\n{{"version":1,"brokers":[{{"broker":3,"logDirs":[{well},{failed}]}}]}}\n'
    assert errors_in(answer) == 1
    with pytest.raises(ValueError, match="no answer"):
        errors_in("Querying brokers\n")


def test_no_source_of_the_suite_but_its_own_file_speaks_of_kquota() -> None:
    """The suite judges no system by name: a name in it would be a special case."""
    folder = REPOSITORY / "conformance"
    sources = [path for path in folder.rglob("*") if path.suffix in {".py", ".j2"}]
    named = {path.name for path in sources if re.search(r"kquota", path.read_text("utf-8"))}
    assert named == {"kquota.py"}
