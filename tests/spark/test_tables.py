"""Tables on Delta: made once, appended to once per transaction, replaced by the day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline import delta
from kquota_pipeline.cli.tables import tables_page
from kquota_pipeline.tables import ALL, CLIENTS, OPERATORS, RECORDS, TICKS, Tables
from tests.spark.rows import rows

DOCS = Path(__file__).resolve().parents[2] / "docs"


def tick(minute: int, brokers: int, day: int = 20):
    at = datetime(2026, 11, day, 10, minute, tzinfo=UTC)
    return {"cluster_id": "C", "at": at, "day": at.date(), "brokers": brokers}


def ticks(spark, *given):
    return rows(spark, TICKS, given)


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_a_table_has_its_day_its_identity_and_its_order_among_its_columns(table):
    names = table.schema.fieldNames()
    assert len(set(names)) == len(names)
    assert {"day", *table.identity, *table.order} <= set(names)


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_what_a_version_changed_is_said_of_each_later_column(table):
    text = " ".join(table.changes)
    assert [name for name in table.later if f"`{name}`" not in text] == []
    assert table.version == 1 or table.changes


def test_the_page_of_the_tables_is_what_the_program_prints():
    assert (DOCS / "tables.md").read_text("utf-8") == tables_page(), "kquota-pipeline tables > docs/tables.md"


def test_a_table_of_a_later_version_is_refused_and_one_of_an_earlier_version_notes_ours(spark, tables):
    def noted(table) -> str:
        rows = spark.sql(f"SHOW TBLPROPERTIES delta.`{tables.location(table)}` ('kquota.version')").collect()
        return str(rows[0]["value"])

    delta.create(spark, tables, replace(CLIENTS, changes=()))
    assert noted(CLIENTS) == "1"
    delta.create(spark, tables, CLIENTS)
    assert noted(CLIENTS) == str(CLIENTS.version) == "3"
    delta.create(spark, tables, replace(CLIENTS, changes=(*CLIENTS.changes, "`colour` is new.")))
    for use in (delta.create, delta.known, delta.opened):
        with pytest.raises(delta.NotATable, match=r"clients is of version 4, .* this one knows version 3"):
            use(spark, tables, CLIENTS)


def test_a_table_is_made_empty_and_keeps_what_it_holds_when_made_again(spark, tables):
    with pytest.raises(delta.NotATable, match="there is no table ticks"):
        delta.read(spark, tables, TICKS)
    assert not delta.exists(spark, tables, TICKS)
    delta.create(spark, tables, TICKS)
    assert dict(delta.read(spark, tables, TICKS).dtypes) == {
        name: kind.simpleString() for name, kind, _ in TICKS.columns
    }
    three = ticks(spark, tick(1, 3))
    delta.append(three, tables, TICKS)
    delta.create(spark, tables, TICKS)
    assertDataFrameEqual(delta.read(spark, tables, TICKS), three)


def test_a_table_with_other_columns_is_refused_by_name(spark, tables):
    other = Tables(tables.root)
    spark.range(1).withColumnRenamed("id", "day").write.format("delta").save(other.location(OPERATORS))
    with pytest.raises(delta.NotATable, match="column cluster_id of table operators is missing, not string"):
        delta.create(spark, tables, OPERATORS)


def test_a_table_of_an_earlier_version_gets_its_later_columns_and_all_comments_once(spark, tables):
    def comments():
        fields = spark.read.format("delta").load(location).schema.fields
        return {field.name: field.metadata.get("comment") for field in fields}

    def words_and_version():
        (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{location}`").collect()
        (newest,) = spark.sql(f"DESCRIBE HISTORY delta.`{location}` LIMIT 1").collect()
        return detail["description"], newest["version"]

    location = tables.location(CLIENTS)
    columns = [
        (name, kind, "in former words" if name in ("day", "user") else what)
        for name, kind, what in CLIENTS.columns
        if name not in CLIENTS.later
    ]
    earlier = replace(CLIENTS, what="formerly", columns=tuple(columns), changes=())
    row = {"cluster_id": "C", "at": datetime(2026, 11, 20, tzinfo=UTC), "day": date(2026, 11, 20)}
    delta.create(spark, tables, earlier)
    delta.append(rows(spark, earlier, [row]), tables, earlier)
    # One of them came with rows, and has no comment.
    noted = rows(spark, CLIENTS, [row | {"topics": ["a", "b"]}])
    noted.drop("fetch_bytes_per_second").write.format("delta").mode("append").option(
        "mergeSchema", "true"
    ).save(location)
    assert comments()["topics"] is None
    delta.create(spark, tables, CLIENTS)
    assert comments() == {name: what for name, _, what in CLIENTS.columns}
    done = words_and_version()
    assert done[0] == CLIENTS.what
    delta.create(spark, tables, CLIENTS)
    assert words_and_version() == done
    both = rows(spark, CLIENTS, [row, row | {"topics": ["a", "b"]}])
    assertDataFrameEqual(delta.read(spark, tables, CLIENTS), both)


def test_a_day_of_an_earlier_version_is_replaced(spark, tables):
    earlier = replace(CLIENTS, columns=tuple(one for one in CLIENTS.columns if one[0] not in CLIENTS.later))
    row = {"cluster_id": "C", "at": datetime(2026, 11, 20, tzinfo=UTC), "day": date(2026, 11, 20)}
    delta.create(spark, tables, earlier)
    delta.append(rows(spark, earlier, [row, row]), tables, earlier)
    kept = delta.read(spark, tables, CLIENTS).distinct()
    delta.replace_day(kept, tables, CLIENTS, date(2026, 11, 20))
    assertDataFrameEqual(delta.read(spark, tables, CLIENTS), rows(spark, CLIENTS, [row]))


def test_an_analysis_leaves_out_days_that_are_still_to_come_and_says_so_once(spark, tables, capsys):
    """Clocks of machines on which this runs are nearer to the record than to the row of a distant day."""
    delta.create(spark, tables, TICKS)
    distant = tick(1, 5) | {"at": datetime(2999, 11, 20, tzinfo=UTC), "day": date(2999, 11, 20)}
    delta.append(ticks(spark, tick(1, 3), distant, distant), tables, TICKS)
    both = [date(2026, 11, 20), date(2999, 11, 20), date(2999, 11, 20)]
    assert sorted(row["day"] for row in delta.opened(spark, tables, TICKS).collect()) == both, "of any time"
    assert capsys.readouterr().err == ""

    at = datetime(2026, 11, 20, tzinfo=UTC)
    delta.create(spark, tables, RECORDS)
    delta.append(rows(spark, RECORDS, [{"day": at.date(), "kafka_timestamp": at}]), tables, RECORDS)
    for _ in range(2):
        assertDataFrameEqual(delta.opened(spark, tables, TICKS), ticks(spark, tick(1, 3)))
    (said,) = capsys.readouterr().err.splitlines()
    assert f"{tables.location(TICKS)}: 2 rows of days after 20" in said
    assert delta.known(spark, tables, TICKS).count() == 3, "a repair sees them"


def test_a_transaction_is_appended_once_however_often_it_is_tried(spark, tables):
    delta.create(spark, tables, TICKS)
    for application, version in (("a", 0), ("a", 0), ("a", 1), ("a", 0), ("b", 0)):
        delta.append(ticks(spark, tick(1, 3)), tables, TICKS, (application, version))
    assert delta.read(spark, tables, TICKS).count() == 3


def test_a_day_is_replaced_and_the_others_stay(spark, tables):
    delta.create(spark, tables, TICKS)
    delta.append(ticks(spark, tick(1, 3, day=20), tick(2, 3, day=20), tick(1, 5, day=21)), tables, TICKS)
    delta.replace_day(ticks(spark, tick(1, 9, day=20)), tables, TICKS, date(2026, 11, 20))
    expected = ticks(spark, tick(1, 9, day=20), tick(1, 5, day=21))
    assertDataFrameEqual(delta.read(spark, tables, TICKS), expected)
    with_bounds = delta.of_days(delta.read(spark, tables, TICKS), first=date(2026, 11, 21))
    assertDataFrameEqual(with_bounds, ticks(spark, tick(1, 5, day=21)))
