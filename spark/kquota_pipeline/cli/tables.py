"""`tables`: what the tables hold, as a page of reference or as JSON; it needs neither Spark nor tables."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from kquota_pipeline.cli.results import JsonOption, to_json
from kquota_pipeline.tables import ALL, Table

_HEAD = """# Tables of the pipeline

<!-- Made by `kquota-pipeline tables` from the definitions of the tables: do not edit it by hand. -->

[The pipeline](pipeline.md) keeps these [Delta](https://delta.io) tables, each partitioned by `day`. A table's
property `kquota.version` is the version of its columns and of their meaning
([the contract](pipeline.md#versions-of-the-tables)).
"""


def tables(as_json: JsonOption = False) -> None:
    """Print all tables with the meaning of each column."""
    typer.echo(to_json([document_of(table) for table in ALL]) if as_json else tables_page(), nl=as_json)


def document_of(table: Table) -> dict[str, object]:
    """Return a table as JSON has it."""
    columns = [
        {"name": name, "type": kind.simpleString(), "meaning": what} for name, kind, what in table.columns
    ]
    return {
        "name": table.name,
        "rows": table.what,
        "version": table.version,
        "identity": list(table.identity),
        "columns": columns,
    }


def tables_page() -> str:
    """Return docs/tables.md."""
    return "\n".join([_HEAD, *(line for table in ALL for line in _section(table))])


def _section(table: Table) -> Iterator[str]:
    identity = ", ".join(f"`{name}`" for name in table.identity)
    yield f"## {table.name}\n"
    yield f"{table.what[0].upper()}{table.what[1:]}. Version {table.version}. Identified by {identity}.\n"
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    for name, kind, what in table.columns:
        yield f"| `{name}` | `{kind.simpleString()}` | {what} |"
    yield ""
