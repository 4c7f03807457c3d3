"""The record of a volume over its soft limit names the topics on it, as a real broker has them."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.loopback.clients import admin_client, create_topic, delete_topic
from tests.integration.spine.fleet import Fleet
from tests.integration.waiting import eventually


def volume_of(fleet: Fleet, broker_id: int) -> dict[str, Any]:
    """The volume with data in the broker's last record."""
    volumes = fleet.usage_of(broker_id)[-1][1]["Volumes"]
    (volume,) = [volume for volume in volumes if volume.get("Role") != "metadata"]
    return dict(volume)


@pytest.mark.accepts("G2")
def test_the_record_follows_the_topics_that_a_broker_creates_and_deletes(fleet: Fleet) -> None:
    admin = admin_client(fleet.cluster.client_configuration())
    for agent in fleet.of():
        agent.reload(scope="volume")
    create_topic(admin, "here-before", [[3, 1]])
    create_topic(admin, "elsewhere", [[1, 2]])
    eventually(lambda: "Topics" not in volume_of(fleet, 3), "below the soft limit no topic is named")
    fleet.fill(3, headroom=0.5)
    eventually(lambda: "here-before" in volume_of(fleet, 3).get("Topics", ()), "the record names it")
    assert volume_of(fleet, 3)["TopicsComplete"] is True
    assert {"elsewhere", "__cluster_metadata"}.isdisjoint(volume_of(fleet, 3)["Topics"])
    create_topic(admin, "here-later", [[1, 3]])
    eventually(lambda: "here-later" in volume_of(fleet, 3)["Topics"], "the record names a replica's topic")
    eventually(
        lambda: all("here-later" in agent.decision.get("topics", ()) for agent in fleet.of()),
        "so does every decision",
    )
    count = len(admin.list_topics(timeout=10).topics)
    eventually(
        lambda: f" of {count} topics: " in fleet.of()[0].cli("status", "--json").stdout,
        "the status has the number of all topics, which this agent's principal may not list",
    )
    delete_topic(admin, "here-later")
    eventually(lambda: "here-later" not in volume_of(fleet, 3)["Topics"], "a deleted topic is gone")
    assert all("elsewhere" not in agent.decision["topics"] for agent in fleet.of())
    for topic in ("here-before", "elsewhere"):
        delete_topic(admin, topic)
