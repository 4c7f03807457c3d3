"""What the role does to a broker's server.properties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import javaproperties
import pytest

from kquota.observe.server_properties import read_broker_properties
from tests.fleet.roles.plays import PlayFailed, run_tasks

Variables = Callable[..., dict[str, object]]
SET = (("kquota_callback", "read"), ("kquota_callback", "properties"))
UNSET = (("kquota_callback", "remove_properties"),)
ORIGINAL = """\
# Ours since 2019
process.roles = broker,controller
node.id: 7
log.dirs=/data/1,\\
   /data/2
super.users=User:CN=admin
!authorizer.class.name=org.example.Nothing
authorizer.class.name=org.example.Authorizer
ssl.key.password=hunter2


"""


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(ORIGINAL)
    file.chmod(0o640)
    return file


@pytest.fixture
def variables(plug_in: dict[str, object]) -> Variables:
    return lambda server_properties, **others: {
        **plug_in,
        "kquota_callback_server_properties": str(server_properties),
        "kquota_callback_agent_principals": [r"User:CN=agent\, first,O=x"],
        "kquota_callback_broker_principals": ["User:CN=broker,O=x"],
        "kquota_fallback_action": "open",
        **others,
    }


def test_a_block_at_the_end_is_all_that_changes_and_taking_it_out_restores_every_byte(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    given = variables(server_properties, kquota_fence=True)
    assert run_tasks(tmp_path, SET, given) == 1
    text = server_properties.read_text("utf-8")
    assert text.startswith(ORIGINAL)
    assert server_properties.stat().st_mode & 0o777 == 0o640
    found = javaproperties.loads(text)
    assert found["client.quota.callback.class"] == "org.kquota.KquotaCallback"
    assert found["kquota.exempt.principals"] == r"User:CN=agent\, first,O=x;User:CN=broker,O=x"
    assert found["kquota.decision.lost.action"] == "open"
    assert found["authorizer.class.name"] == "org.kquota.KquotaAuthorizer"
    assert found["kquota.fence.authorizer.class"] == "org.example.Authorizer"
    assert [str(path) for path in read_broker_properties(server_properties).log_dirs] == [
        "/data/1",
        "/data/2",
    ]

    assert run_tasks(tmp_path, SET, given) == 0
    assert server_properties.read_text("utf-8") == text

    without_fence = variables(server_properties)
    assert run_tasks(tmp_path, SET, without_fence) == 1
    assert javaproperties.loads(server_properties.read_text("utf-8"))["authorizer.class.name"] == (
        "org.example.Authorizer"
    )

    assert run_tasks(tmp_path, UNSET, given) == 1
    assert server_properties.read_text("utf-8") == ORIGINAL
    assert run_tasks(tmp_path, UNSET, given) == 0


def test_a_trial_run_changes_nothing_and_shows_no_password(
    server_properties: Path, tmp_path: Path, variables: Variables
) -> None:
    assert run_tasks(tmp_path, SET, variables(server_properties), "--check", "--diff") == 1
    assert server_properties.read_text("utf-8") == ORIGINAL
    # The output of a play that succeeds is not returned; this one fails after the same tasks.
    entrances = (*SET, ("kquota_callback", "nowhere"))
    with pytest.raises(PlayFailed) as failed:
        run_tasks(tmp_path, entrances, variables(server_properties), "--check", "--diff", "-vvv")
    assert "org.kquota.KquotaCallback" in str(failed.value)
    assert "hunter2" not in str(failed.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path, variables: Variables) -> None:
    with pytest.raises(PlayFailed, match=r"There is no file .*/absent\.properties on localhost"):
        run_tasks(tmp_path, SET, variables(tmp_path / "absent.properties"))
