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
from typing import Annotated

from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter

from kquota.formats.record_verifier import KeptCounter
from kquota.formats.strict_json import InvalidJson, parse_json
from kquota.host.atomic import remove_leftovers, replace_file
from kquota.host.documents import read_as
from kquota.policy.timestamps import format_utc, parse_utc

FILE_NAME = "state.json"
"""Its name in the state directory."""

_MODE = 0o600
_MAX_BYTES = 4 * 1024 * 1024
_SCHEMA_VERSION = 1

Time = Annotated[datetime, PlainValidator(parse_utc), PlainSerializer(format_utc)]
BrokerId = Annotated[int, Field(strict=True, ge=0)]
Count = Annotated[int, Field(strict=True, ge=0)]


@dataclass(frozen=True, slots=True)
class EnforceGrant:
    """That this agent was once verified to be exempt on its broker, and may start enforcing."""

    granted_at: Time
    cluster_id: str
    broker_id: BrokerId


@dataclass(frozen=True, slots=True)
class ActiveBrokers:
    """The active brokers by the last answer of the cluster."""

    cluster_id: str
    broker_ids: tuple[BrokerId, ...]
    seen_at: Time


@dataclass(frozen=True, slots=True)
class EverListed:
    """The brokers that the cluster's list has named since the installation, decommissioned ones aside."""

    cluster_id: str
    broker_ids: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class OrdersRead:
    """The counters of the signed orders that were read, so that a copy of a withdrawn one does not count."""

    cluster_id: str
    counters: tuple[KeptCounter, ...]


@dataclass(frozen=True, slots=True)
class GoodConfiguration:
    """The last configuration that the agent ran with: its file, and what was in force, in its keys."""

    path: str
    document: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AgentState:
    """Everything remembered; the empty state is a first start's.

    ``remembered_volumes`` is by log dir, ``bound_limits`` by path of ``limits.volumes``; their content is the
    business of ``kquota.disks``. ``signing_counter`` is above the counter of every record that was signed.
    ``ever_listed`` is None until the agent may conclude from it who was never listed. ``cordoned_log_dirs``
    are those that the agent has cordoned. ``orders_read`` is None where no signed order was read.
    """

    remembered_volumes: Mapping[str, object] = field(default_factory=dict)
    enforce_grant: EnforceGrant | None = None
    active_brokers: ActiveBrokers | None = None
    bound_limits: Mapping[str, object] = field(default_factory=dict)
    signing_counter: Count = 0
    ever_listed: EverListed | None = None
    cordoned_log_dirs: tuple[str, ...] = ()
    orders_read: OrdersRead | None = None
    good_configuration: GoodConfiguration | None = None

    def granted_for(self, broker_id: int) -> str | None:
        """Return the id of the cluster that enforcing was granted for to this broker's agent, if it was."""
        grant = self.enforce_grant
        return grant.cluster_id if grant is not None and grant.broker_id == broker_id else None

    def with_grant(self, cluster_id: str, broker_id: int, now: datetime) -> AgentState:
        """Return this state with enforcing granted for a broker."""
        return replace(self, enforce_grant=EnforceGrant(now, cluster_id, broker_id))


_STATE = TypeAdapter(AgentState)


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
            return read_as(_STATE, parse_json(raw, _MAX_BYTES)), None
        except InvalidJson as error:
            if not self._owned:
                return AgentState(), f"the state file {self.path} is broken ({error})"
            return AgentState(), self._set_aside(str(error))

    def save(self, state: AgentState) -> None:
        """Replace the file atomically, readable only by the agent: also if root saves it, it stays the
        agent's.

        Raises:
            OSError: with the path; the old file is still there.
        """
        document = {"schema_version": _SCHEMA_VERSION} | _STATE.dump_python(state)
        data = json.dumps(document, indent=1).encode() + b"\n"
        replace_file(self.path, data, _MODE, keep_owner=not self._owned)

    def _set_aside(self, reason: str) -> str:
        corrupt = self.path.with_name(self.path.name + ".corrupt")
        try:
            self.path.replace(corrupt)
        except OSError as error:
            return f"the state file {self.path} is broken ({reason}) and can't be set aside: {error.strerror}"
        return f"the state file {self.path} is broken ({reason}); set aside as {corrupt}, starting afresh"
