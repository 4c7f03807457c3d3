"""Running agents have every metric that alerts and dashboard name."""

from __future__ import annotations

import time

from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually
from tests.monitoring.promtool import rules
from tests.monitoring.test_alerts import METRIC
from tests.monitoring.test_dashboard import queries


def test_every_metric_of_the_alerts_and_the_dashboard_is_in_a_live_scrape(fleet: Fleet) -> None:
    agent = fleet.agents[1]
    texts = [*(rule["expr"] for rule in rules().values()), *queries()]
    # Brokers that are not known are series only while there are any, and so are orders: other tests, such as
    # test_unknown_states.py, test_clock_jumps.py and test_operators.py, look for those.
    rare = {
        "kquota_order_until_timestamp_seconds",
        "kquota_undetermined",
        "kquota_clock_behind_seconds",
        "kquota_covered_until_timestamp_seconds",
        "kquota_topics_held",
        "kquota_scope_widened",
        "kquota_signing_authority_expiry_timestamp_seconds",  # with signatures: test_signed_reports.py
    }
    named = {name for text in texts for name in METRIC.findall(text)} - rare
    # A volume that fills has a rate and a time to its limits; its agent has to have seen it for a while.
    fleet.fill(1, headroom=0.5)
    fleet.await_decided("THROTTLE")
    eventually(
        lambda: not named - {name for name, _ in agent.metrics()},
        f"every one of {sorted(named)}",
    )
    expires = agent.metric("kquota_client_certificate_expiry_timestamp_seconds")
    assert expires is not None
    assert expires > time.time()
