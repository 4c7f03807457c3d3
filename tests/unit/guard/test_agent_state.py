"""The agent's memory survives, and a broken memory loosens nothing."""

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kquota.formats.record_verifier import KeptCounter
from kquota.guard.agent_state import (
    ActiveBrokers,
    AgentState,
    AgentStateFile,
    EnforceGrant,
    EverListed,
    GoodConfiguration,
    OrdersRead,
)
from tests.unit.wording import wording

NOW = datetime(2026, 11, 20, 10, 15, 30, 123000, tzinfo=UTC)
FULL = AgentState(
    remembered_volumes={"/data/1": {"mount_point": "/data", "fs_uuid": None}},
    enforce_grant=EnforceGrant(NOW, "cluster", 3),
    active_brokers=ActiveBrokers("cluster", (1, 2, 3), NOW),
    signing_counter=1_700_000_000_000,
    ever_listed=EverListed("cluster", (1, 2, 3, 7)),
)


@pytest.fixture
def file(tmp_path: Path) -> AgentStateFile:
    return AgentStateFile(tmp_path / "state.json", take_over=True)


@pytest.mark.parametrize("state", [FULL, AgentState()])
def test_what_is_saved_is_loaded(file: AgentStateFile, state: AgentState) -> None:
    file.save(state)
    assert AgentStateFile(file.path).load() == (state, None)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def test_a_first_start_is_nothing_wrong(file: AgentStateFile) -> None:
    assert file.load() == (AgentState(), None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\x00" * 100,
        b'{"remembered_volumes": []}',
        b'{"enforce_grant": {"granted_at": "yesterday", "cluster_id": "c", "broker_id": 1}}',
        b'{"enforce_grant": {"granted_at": "2026-11-20T10:15:30Z", "cluster_id": "c", "broker_id": true}}',
        b'{"active_brokers": {"cluster_id": "c", "broker_ids": [-1], "seen_at": "2026-11-20T10:15:30Z"}}',
        b'{"active_brokers": {"cluster_id": "c", "broker_ids": 7, "seen_at": "2026-11-20T10:15:30Z"}}',
        b'{"ever_listed": {"cluster_id": "c", "broker_ids": [-1]}}',
    ],
)
def test_a_broken_file_is_set_aside_and_grants_nothing(file: AgentStateFile, content: bytes) -> None:
    file.path.write_bytes(content)
    state, problem = file.load()
    assert state == AgentState()
    assert state.granted_for(1) is None
    assert problem is not None
    assert str(file.path) in problem
    assert file.path.with_name("state.json.corrupt").read_bytes() == content
    assert file.load() == (AgentState(), None), "reported once"


def test_fields_of_a_later_version_are_ignored(file: AgentStateFile) -> None:
    file.save(FULL)
    document = json.loads(file.path.read_bytes())
    document |= {"schema_version": 9, "colour": "blue"}
    document["enforce_grant"]["by"] = "someone"
    file.path.write_text(json.dumps(document))
    assert file.load() == (FULL, None)


def test_a_grant_is_for_one_broker_of_one_cluster() -> None:
    state = AgentState().with_grant("cluster", 3, NOW)
    assert state == AgentState(enforce_grant=EnforceGrant(NOW, "cluster", 3))
    assert state.granted_for(3) == "cluster"
    assert state.granted_for(4) is None


def test_an_unreadable_file_is_reported_and_kept(file: AgentStateFile) -> None:
    file.path.mkdir()
    state, problem = file.load()
    assert state == AgentState()
    assert problem is not None
    assert "can't be read" in problem


def test_only_the_agent_removes_what_a_writer_left_or_sets_a_broken_file_aside(tmp_path: Path) -> None:
    path, being_written = tmp_path / "state.json", tmp_path / ".state.json.77.kquota-tmp"
    being_written.write_bytes(b"{")
    path.write_bytes(b"broken")
    state, problem = AgentStateFile(path).load()
    assert state == AgentState()
    assert problem is not None
    assert "is broken" in problem
    assert being_written.exists(), "it may be a live agent's"
    assert path.read_bytes() == b"broken"
    _, problem = AgentStateFile(path, take_over=True).load()
    assert problem is not None
    assert "set aside" in problem
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["state.json.corrupt"]


NOBODY = 65534
Owner = tuple[int, int]


def give(path: Path, uid: int) -> Owner:
    """Give it to another user, where these tests may do that; return whose it is."""
    if os.getuid() == 0:
        os.chown(path, uid, uid)
    found = path.stat()
    return found.st_uid, found.st_gid


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[Owner]:
    """The user whom root gives its files; the user of these tests passes for root."""
    calls: list[Owner] = []
    fchown = os.fchown

    def recorded(file: int, uid: int, gid: int) -> None:
        calls.append((uid, gid))
        fchown(file, uid, gid)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", recorded)
    return calls


def test_what_root_saves_beside_an_agent_stays_the_agent_s(tmp_path: Path, given: list[Owner]) -> None:
    agent = give(tmp_path, NOBODY)
    file = AgentStateFile(tmp_path / "state.json")
    file.save(FULL)
    assert given == [agent], "a new file goes to the owner of the directory"
    user = give(file.path, NOBODY - 1)
    file.save(FULL)
    assert given == [agent, user], "an old one stays with its owner"
    found = file.path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (*user, 0o600)


def test_a_state_file_that_root_once_took_goes_back_to_the_agent(tmp_path: Path, given: list[Owner]) -> None:
    agent = give(tmp_path, NOBODY)
    file = AgentStateFile(tmp_path / "state.json")
    file.path.write_text("{}", "utf-8")
    file.save(FULL)
    assert given == [agent]


def test_an_agent_s_own_file_is_given_to_nobody(
    file: AgentStateFile, given: list[Owner], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(file.path.parent, NOBODY)
    file.save(FULL)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    AgentStateFile(file.path).save(FULL)
    assert given == []


def test_what_lies_in_the_place_of_root_s_temp_file_is_neither_written_nor_given_away(
    tmp_path: Path, given: list[Owner]
) -> None:
    give(tmp_path, NOBODY)
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.write_text("root's own", "utf-8")
    (tmp_path / f".state.json.{os.getpid()}.kquota-tmp").hardlink_to(elsewhere)
    file = AgentStateFile(tmp_path / "state.json")
    file.save(FULL)
    assert elsewhere.read_text("utf-8") == "root's own"
    assert elsewhere.stat().st_uid == os.getuid()
    assert file.load() == (FULL, None)


AT = '"2026-11-20T10:15:30Z"'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("no-object", "[]"),
        ("remembered_volumes", '{"remembered_volumes": []}'),
        ("bound_limits", '{"bound_limits": 7}'),
        ("enforce_grant", '{"enforce_grant": 7}'),
        ("active_brokers", '{"active_brokers": true}'),
        ("ever_listed", '{"ever_listed": [1]}'),
        ("grant-without-a-cluster", f'{{"enforce_grant": {{"granted_at": {AT}}}}}'),
        ("grant-broker", f'{{"enforce_grant": {{"granted_at": {AT}, "cluster_id": "c", "broker_id": -1}}}}'),
        ("grant-time", '{"enforce_grant": {"granted_at": "then"}}'),
        ("brokers-without-a-cluster", '{"active_brokers": {}}'),
        ("brokers-cluster", '{"active_brokers": {"cluster_id": 1}}'),
        ("brokers-ids", '{"active_brokers": {"cluster_id": "c", "broker_ids": 7}}'),
        ("brokers-id", '{"active_brokers": {"broker_ids": ["1"], "cluster_id": "c"}}'),
        ("brokers-time", '{"active_brokers": {"broker_ids": [], "cluster_id": "c", "seen_at": "then"}}'),
    ],
)
def test_what_is_wrong_with_a_broken_file_is_said(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    broken = f"the state file {path} is broken ({wording('refusals')['state-file'][name]})"
    _, problem = AgentStateFile(path).load()
    assert problem is not None
    assert problem.startswith(broken)
    _, problem = AgentStateFile(path, take_over=True).load()
    assert problem is not None
    assert problem.startswith(broken)
    assert problem.endswith(f"; set aside as {path}.corrupt, starting afresh")


def test_what_is_left_out_is_not_known(file: AgentStateFile) -> None:
    file.path.write_text("{}")
    assert file.load() == (AgentState(), None)


def test_the_file_can_be_read_by_people_and_by_later_versions(file: AgentStateFile) -> None:
    state = AgentState(
        bound_limits={"/data": ["an id"]},
        enforce_grant=EnforceGrant(NOW, "c", 0),
        active_brokers=ActiveBrokers("c", (0,), NOW),
        ever_listed=EverListed("c", (0, 7)),
        cordoned_log_dirs=("/data/1",),
        orders_read=OrdersRead("c", (KeptCounter("hold", "operator/jane", 5, "ab"),)),
        good_configuration=GoodConfiguration("/etc/kquota/agent.yml", {"mode": "enforce"}),
    )
    file.save(state)
    assert file.load() == (state, None)
    assert json.loads(file.path.read_text()) == {
        "schema_version": 1,
        "remembered_volumes": {},
        "bound_limits": {"/data": ["an id"]},
        "good_configuration": {"path": "/etc/kquota/agent.yml", "document": {"mode": "enforce"}},
        "enforce_grant": {"granted_at": "2026-11-20T10:15:30.123Z", "cluster_id": "c", "broker_id": 0},
        "active_brokers": {"cluster_id": "c", "broker_ids": [0], "seen_at": "2026-11-20T10:15:30.123Z"},
        "signing_counter": 0,
        "ever_listed": {"cluster_id": "c", "broker_ids": [0, 7]},
        "cordoned_log_dirs": ["/data/1"],
        "orders_read": {
            "cluster_id": "c",
            "counters": [{"key": "hold", "writer": "operator/jane", "counter": 5, "certificate": "ab"}],
        },
    }
    assert len(file.path.read_text().splitlines()) > 10, "a line for each field"
