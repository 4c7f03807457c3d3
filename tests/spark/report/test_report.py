"""From a generated history to the document and its JSON, and the page as a browser shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kquota_pipeline.backtest.policy import parse_policies
from kquota_pipeline.cli.results import to_json
from kquota_pipeline.generator.fleet import FleetSize
from kquota_pipeline.generator.history import generate
from kquota_pipeline.report.model import Analysis, analyse
from kquota_pipeline.report.page import page
from tests.spark.report.browser import Browser, chromium

LAYOUT = Path(__file__).with_name("layout.js").read_text("utf-8")
SIZE = FleetSize(brokers=5, volumes_per_broker=2, days=16, interval_seconds=1800)
UNREADABLE = "unreadable-cluster"
POLICIES = parse_policies(
    {
        "policies": [
            {"name": "as recorded"},
            {
                "name": "no quota",
                "limits": {
                    "hard": {"type": "MinFreeBytes", "level": 0},
                    "soft": {"type": "MinFreeBytes", "level": 1},
                },
                "fallback_action": "open",
            },
        ]
    },
    "test",
)


@dataclass(frozen=True)
class Made:
    analysis: Analysis
    html: str
    progress: list[str]

    @property
    def cluster(self) -> Any:
        clusters: Any = self.analysis.document["clusters"]
        return clusters[0]


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> Made:
    progress: list[str] = []
    # By usage alone: forecasts from looks have tests of their own.
    history = replace(generate(spark, SIZE), expiry=None)
    unread = history.usage.where("broker_id = 1").withColumns(
        {"cluster_id": F.lit(UNREADABLE), "status": F.lit("failed")}
    )
    analysis = analyse(
        replace(history, usage=history.usage.union(unread)),
        POLICIES,
        {"web": ["CN=web", "CN=app"]},
        tick_seconds=1800,
        now=datetime(2026, 11, 1, tzinfo=UTC),
        progress=progress.append,
    )
    document: Any = analysis.document
    assert (document["quarantine"], document["clusters"][0]["silent_brokers"]) == ([], [])
    # Nothing is missing there. The page is shown as if it were.
    missing = {
        "reason": "At: a time from 2020 on",
        "records": 2880,
        "brokers": [7],
        "last_seconds": 1_792_000_000,
    }
    clusters = [
        {**document["clusters"][0], "silent_brokers": [{"broker_id": 7, "last_seconds": 1_791_000_000}]}
    ]
    return Made(analysis, page({**document, "clusters": clusters, "quarantine": [missing]}), progress)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium") / "profile") as running:
        yield running


def test_a_cluster_whose_volumes_can_t_be_read_is_named_beside_the_others(made: Made) -> None:
    document: Any = made.analysis.document
    assert document["unreadable_clusters"] == [UNREADABLE]
    assert [cluster["cluster_id"] for cluster in document["clusters"]] == [f"generated-{SIZE.seed}-0"]
    assert f"No sample of a volume of cluster {UNREADABLE} could be read" in made.html


def test_every_volume_has_a_forecast_and_every_policy_an_outcome(made: Made) -> None:
    cluster = made.cluster
    # one broker of the five has been decommissioned
    assert len(cluster["forecasts"]) == 8
    assert len(cluster["series"]) == 6
    ours = [row["policy"] for row in cluster["outcomes"]]
    assert ours == ["as recorded", "no quota", *cluster["tried"]]
    for row in cluster["outcomes"]:
        seconds = row["open_seconds"] + row["throttle_seconds"] + row["pause_seconds"]
        assert seconds == 1800 * SIZE.ticks
    of_topics = [(row["broker_id"], row["topic"]) for row in cluster["topics"]]
    assert len(of_topics) == SIZE.brokers * 7
    assert of_topics == sorted(of_topics), "the same history gives the same report"
    assert made.progress[0] == "forecasting every volume"


def test_the_recommended_limits_let_no_disk_fill_in_the_week_that_was_held_back(made: Made) -> None:
    cluster = made.cluster
    outcomes = {row["policy"]: row for row in cluster["outcomes"]}
    assert outcomes[cluster["recommendation"]["policy"]]["first_filled_tick"] is None
    risk = cluster["recommendation"]["risk"]
    assert risk["held_back_days"] == 7
    assert risk["sentence"] in page(made.analysis.document)


def test_bytes_held_are_divided_among_principals_and_what_is_not_known(made: Made) -> None:
    holders = made.cluster["holders"]
    held = {row["owner"]: row["held_bytes"] for row in holders["principals"]}
    on_disks = sum(row["consumed_bytes"] for row in made.cluster["forecasts"])
    assert sum(held.values()) == pytest.approx(on_disks, rel=0.1)
    assert {"CN=web", "CN=orders", None} <= set(held)
    assert holders["known_principal_ratio"] == pytest.approx(1 - held[None] / sum(held.values()), abs=0.1)
    first = holders["fillers"][0]
    assert sum(part["bytes"] for part in first["parts"]) == pytest.approx(first["bytes"])
    assert {(one["broker_id"], one["volume_name"]) for one in holders["fillers"]} == {
        (row["broker_id"], row["volume_name"]) for row in made.cluster["forecasts"][:6]
    }


def test_the_json_is_the_whole_document_without_figures_that_json_has_not(made: Made) -> None:
    document = json.loads(to_json(made.analysis.document))
    assert document["clusters"][0]["cluster_id"] == made.cluster["cluster_id"]
    assert {row["method"] for row in document["accuracy"]} >= {"straight line", "seasonal-naive"}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "phone"), [(360, True), (1280, False)], ids=["phone", "wide"])
def test_a_browser_shows_all_of_the_page_and_loads_nothing_from_elsewhere(
    made: Made, browser: Browser, width: int, phone: bool, dark: bool, tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    file.write_text(made.html, "utf-8")
    browser.requests.clear()
    browser.complaints.clear()
    browser.screen(width, 800, dark=dark, phone=phone)
    browser.open(file)
    seen = browser.evaluate(LAYOUT)
    browser.photograph(tmp_path / "report.png")
    assert browser.requests == [file.as_uri()]
    assert browser.complaints == []
    assert seen["width"] == width
    assert seen["outside"] == [], "text that reaches over what it is in"
    assert seen["overlapping"] == [], "texts of a plot that lie on each other"
    assert len(seen["plots"]) >= 9
    assert min(seen["plots"]) >= 250, "a plot is too small to read"
    assert (seen["paper"] < 0.1) == dark
    # The requirements of WCAG 2.1 for text, in AA.
    assert [text for text in seen["faint"] if text["contrast"] < 4.5] == []


def test_what_clients_call_themselves_is_shown_and_never_markup(
    made: Made, browser: Browser, tmp_path: Path
) -> None:
    document: Any = json.loads(to_json(made.analysis.document))
    hostile = "<script>document.title='owned'</script><img src=//127.0.0.1/x>"
    document["clusters"][0]["clients"][0] |= {"user": "CN=a", "client_id": hostile}
    file = tmp_path / "report.html"
    file.write_text(page(document), "utf-8")
    browser.requests.clear()
    browser.open(file)
    assert browser.requests == [file.as_uri()]
    assert browser.evaluate("document.title") == "kquota: disks of the cluster"
    assert hostile in browser.evaluate("document.body.innerText")
