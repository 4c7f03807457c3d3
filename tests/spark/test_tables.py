"""Tables on Delta: made once, appended to once per transaction, replaced by the day."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.testing import assertDataFrameEqual

from kquota_pipeline import delta
from kquota_pipeline.cli.tables import tables_page
from kquota_pipeline.tables import ALL, CLIENTS, HOURS, OPERATORS
from tests.spark.rows import rows

DOCS = Path(__file__).resolve().parents[2] / "docs"


def hour(minute: int, samples: int, day: int = 20):
    at = datetime(2026, 11, day, 10, minute, tzinfo=UTC)
    return {"cluster_id": "C", "at": at, "day": at.date(), "samples": samples}


def hours(spark, *given):
    return rows(spark, HOURS, given)


@pytest.mark.parametrize("table", ALL, ids=lambda table: table.name)
def test_a_table_has_its_day_its_identity_and_its_order_among_its_columns(table):
    names = table.schema.fieldNames()
    assert len(set(names)) == len(names)
    assert {"day", *table.identity, *table.order} <= set(names)


def test_the_page_of_the_tables_is_what_the_program_prints():
    assert (DOCS / "tables.md").read_text("utf-8") == tables_page(), "kquota-pipeline tables > docs/tables.md"


def test_a_table_of_another_version_is_refused(spark, tables):
    delta.create(spark, tables, replace(CLIENTS, version=CLIENTS.version + 1))
    clients = tables.location(CLIENTS)
    (noted,) = spark.sql(f"SHOW TBLPROPERTIES delta.`{clients}` ('kquota.version')").collect()
    assert noted["value"] == str(CLIENTS.version + 1)
    spark.range(1).write.format("delta").save(tables.location(OPERATORS))
    for table, version in ((CLIENTS, CLIENTS.version + 1), (OPERATORS, "none")):
        for use in (delta.create, delta.known):
            said = (
                f"{table.name} is of version {version}, and this kquota-pipeline knows version 1 alone: use"
            )
            with pytest.raises(delta.NotATable, match=said):
                use(spark, tables, table)


def test_a_table_is_made_empty_and_keeps_what_it_holds_when_made_again(spark, tables):
    with pytest.raises(delta.NotATable, match="there is no table hours"):
        delta.read(spark, tables, HOURS)
    assert not delta.exists(spark, tables, HOURS)
    delta.create(spark, tables, HOURS)
    assert dict(delta.read(spark, tables, HOURS).dtypes) == {
        name: kind.simpleString() for name, kind, _ in HOURS.columns
    }
    three = hours(spark, hour(1, 3))
    delta.append(three, tables, HOURS)
    delta.create(spark, tables, HOURS)
    assertDataFrameEqual(delta.read(spark, tables, HOURS), three)


def test_a_table_with_other_columns_is_refused_by_name(spark, tables):
    delta.create(spark, tables, replace(OPERATORS, columns=OPERATORS.columns[1:]))
    for use in (delta.create, delta.known, delta.read):
        with pytest.raises(
            delta.NotATable, match="column cluster_id of table operators is missing, not string"
        ):
            use(spark, tables, OPERATORS)


def test_a_table_and_its_columns_have_the_words_of_their_page(spark, tables):
    delta.create(spark, tables, CLIENTS)
    delta.create(spark, tables, CLIENTS)
    fields = spark.read.format("delta").load(tables.location(CLIENTS)).schema.fields
    assert {field.name: field.metadata["comment"] for field in fields} == {
        name: what for name, _, what in CLIENTS.columns
    }
    (detail,) = spark.sql(f"DESCRIBE DETAIL delta.`{tables.location(CLIENTS)}`").collect()
    (newest,) = spark.sql(f"DESCRIBE HISTORY delta.`{tables.location(CLIENTS)}` LIMIT 1").collect()
    assert (detail["description"], newest["version"]) == (CLIENTS.what, 0)


def test_a_transaction_is_appended_once_however_often_it_is_tried(spark, tables):
    delta.create(spark, tables, HOURS)
    for application, version in (("a", 0), ("a", 0), ("a", 1), ("a", 0), ("b", 0)):
        delta.append(hours(spark, hour(1, 3)), tables, HOURS, (application, version))
    assert delta.read(spark, tables, HOURS).count() == 3


def test_a_day_is_replaced_and_the_others_stay(spark, tables):
    delta.create(spark, tables, HOURS)
    delta.append(hours(spark, hour(1, 3, day=20), hour(2, 3, day=20), hour(1, 5, day=21)), tables, HOURS)
    delta.replace_day(hours(spark, hour(1, 9, day=20)), tables, HOURS, date(2026, 11, 20))
    expected = hours(spark, hour(1, 9, day=20), hour(1, 5, day=21))
    assertDataFrameEqual(delta.read(spark, tables, HOURS), expected)
    with_bounds = delta.of_days(delta.read(spark, tables, HOURS), first=date(2026, 11, 21))
    assertDataFrameEqual(with_bounds, hours(spark, hour(1, 5, day=21)))
