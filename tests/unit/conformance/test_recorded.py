"""The recorded run, and the page made of it."""

from __future__ import annotations

from bench.harness.bench import REPOSITORY
from bench.harness.results import Store, of
from conformance.__main__ import trial_name
from conformance.figures import COLUMNS, Fill, Survival, behind
from conformance.page import page
from conformance.plan import Plan
from conformance.systems import systems

RESULTS = REPOSITORY / "conformance" / "results.jsonl"
NAMES = [trial_name(name, fill) for name in systems() for fill in Fill]


def test_the_recorded_results_give_the_page_of_this_repository() -> None:
    store = Store(RESULTS, (Survival,))
    saved = store.load(NAMES)
    missing = [name for name in NAMES if not store.load([name])]
    assert page(saved, systems(), Plan(), missing) == (REPOSITORY / "docs" / "conformance.md").read_text(
        "utf-8"
    )


def test_each_row_where_kquota_is_not_the_best_says_why() -> None:
    rows = of(
        Survival, [figure for entry in Store(RESULTS, (Survival,)).load(NAMES) for figure in entry.figures]
    )
    remarks = systems()["kquota"].remarks
    assert {column.name for _, column in behind(rows, "kquota")} <= remarks.keys()
    assert remarks.keys() <= {column.name for column in COLUMNS}
