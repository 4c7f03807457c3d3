"""The agent's memory across restarts and reboots, in its state directory.

Only convenience and caution live here: everything the cluster has to agree on is in the topic. A lost
or broken state file therefore never loosens anything; the agent observes until enforcing is verified
again, and expects each log dir on the volume that its own last record on the topic names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from kquota.core.strict_json import InvalidJson, parse_json
from kquota.core.timestamps import InvalidTimestamp, format_utc, parse_utc
from kquota.host.atomic import remove_leftovers, replace_file

FILE_NAME = "state.json"
"""Its name in the state directory."""

_MODE = 0o600
_MAX_BYTES = 1024 * 1024
_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class EnforceGrant:
    """That this agent was once verified to be exempt on its broker, and may start enforcing."""

    granted_at: datetime
    cluster_id: str
    broker_id: int


@dataclass(frozen=True, slots=True)
class ActiveBrokers:
    """The active brokers by the last answer of the cluster."""

    cluster_id: str
    broker_ids: tuple[int, ...]
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class AgentState:
    """Everything remembered; the empty state is a first start's.

    ``remembered_volumes`` is by log dir, ``bound_limits`` by path of ``limits.volumes``; their content is the
    business of ``kquota.observe``.
    """

    remembered_volumes: Mapping[str, object] = field(default_factory=dict)
    enforce_grant: EnforceGrant | None = None
    active_brokers: ActiveBrokers | None = None
    bound_limits: Mapping[str, object] = field(default_factory=dict)

    def granted_for(self, broker_id: int) -> str | None:
        """Return the id of the cluster that enforcing was granted for to this broker's agent, if it was."""
        grant = self.enforce_grant
        return grant.cluster_id if grant is not None and grant.broker_id == broker_id else None

    def with_grant(self, cluster_id: str, broker_id: int, now: datetime) -> AgentState:
        """Return this state with enforcing granted for a broker."""
        return replace(self, enforce_grant=EnforceGrant(now, cluster_id, broker_id))


class AgentStateFile:
    """The state file: the agent's own, or, for commands next to a running agent, another agent's."""

    def __init__(self, path: Path, *, take_over: bool = False) -> None:
        """Open ``path``. The agent owns it: it removes unfinished files that an earlier agent left there.

        No other program may: a file that looks left over could be one that a live agent is writing.

        Raises:
            OSError: the leftovers of an earlier agent can't be removed.
        """
        self.path = path
        self._owned = take_over
        if take_over:
            remove_leftovers(path)

    def load(self) -> tuple[AgentState, str | None]:
        """Return the state, and the defect of the file, if any, as one sentence.

        For a broken file it returns the empty state, and the agent sets the file aside next to its old place
        with the suffix ``.corrupt``; a missing file is a first start and nothing wrong.
        """
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return AgentState(), None
        except OSError as error:
            return AgentState(), f"the state file {self.path} can't be read: {error.strerror}"
        try:
            return _from_document(parse_json(raw, _MAX_BYTES)), None
        except (InvalidJson, _WrongShape) as error:
            if not self._owned:
                return AgentState(), f"the state file {self.path} is broken ({error})"
            return AgentState(), self._set_aside(str(error))

    def save(self, state: AgentState) -> None:
        """Replace the file atomically, readable only by the agent: also if root saves it, it stays the
        agent's.

        Raises:
            OSError: with the path; the old file is still there.
        """
        data = json.dumps(_to_document(state), indent=1).encode() + b"\n"
        replace_file(self.path, data, _MODE, keep_owner=not self._owned)

    def _set_aside(self, reason: str) -> str:
        corrupt = self.path.with_name(self.path.name + ".corrupt")
        try:
            self.path.replace(corrupt)
        except OSError as error:
            return f"the state file {self.path} is broken ({reason}) and can't be set aside: {error.strerror}"
        return f"the state file {self.path} is broken ({reason}); set aside as {corrupt}, starting afresh"


class _WrongShape(ValueError):
    """JSON that is no agent state."""


def _to_document(state: AgentState) -> dict[str, object]:
    grant, active = state.enforce_grant, state.active_brokers
    return {
        "schema_version": _SCHEMA_VERSION,
        "remembered_volumes": dict(state.remembered_volumes),
        "bound_limits": dict(state.bound_limits),
        "enforce_grant": None
        if grant is None
        else {
            "granted_at": format_utc(grant.granted_at),
            "cluster_id": grant.cluster_id,
            "broker_id": grant.broker_id,
        },
        "active_brokers": None
        if active is None
        else {
            "cluster_id": active.cluster_id,
            "broker_ids": list(active.broker_ids),
            "seen_at": format_utc(active.seen_at),
        },
    }


def _from_document(document: object) -> AgentState:
    top = _mapping(document, "the document")
    grant, active = top.get("enforce_grant"), top.get("active_brokers")
    return AgentState(
        remembered_volumes=_mapping(top.get("remembered_volumes", {}), "remembered_volumes"),
        enforce_grant=None if grant is None else _grant(_mapping(grant, "enforce_grant")),
        active_brokers=None if active is None else _active(_mapping(active, "active_brokers")),
        bound_limits=_mapping(top.get("bound_limits", {}), "bound_limits"),
    )


def _grant(grant: Mapping[str, object]) -> EnforceGrant:
    key = "enforce_grant"
    return EnforceGrant(
        _time(grant, "granted_at", key),
        _text(grant, "cluster_id", key),
        _broker_id(grant.get("broker_id"), key),
    )


def _active(active: Mapping[str, object]) -> ActiveBrokers:
    key = "active_brokers"
    broker_ids = active.get("broker_ids")
    if not isinstance(broker_ids, list):
        raise _WrongShape(f"{key}.broker_ids is no list")
    return ActiveBrokers(
        _text(active, "cluster_id", key),
        tuple(_broker_id(broker_id, key) for broker_id in broker_ids),
        _time(active, "seen_at", key),
    )


def _mapping(value: object, key: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _WrongShape(f"{key} is no object")
    return value


def _text(mapping: Mapping[str, object], name: str, key: str) -> str:
    value = mapping.get(name)
    if not isinstance(value, str):
        raise _WrongShape(f"{key}.{name} is no text")
    return value


def _broker_id(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _WrongShape(f"{key} holds {value!r}, which is no broker id")
    return value


def _time(mapping: Mapping[str, object], name: str, key: str) -> datetime:
    try:
        return parse_utc(mapping.get(name))
    except InvalidTimestamp as error:
        raise _WrongShape(f"{key}.{name}: {error}") from None
