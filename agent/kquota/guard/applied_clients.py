"""The clients of this broker, as the plug-in reports them in the applied-state file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kquota.guard.applied_fields import Count, Number, Positive, Ratio, Shown, Text

# The plug-in reports the topics of this time. A longer window has perhaps seen writes to others.
_TOPICS_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A client's usage of this broker, and its limit; None without a limit.

    ``produced_bytes``, ``fetched_bytes`` (None: a plug-in that does not count them) and ``held_seconds``
    (above the limit) count since the plug-in knows them.
    """

    produced_bytes: Count
    fetched_bytes: Count | None = None
    held_seconds: Number
    produce_bytes_per_second: Annotated[Number, Field(validation_alias="produce_byte_rate")]
    produce_throttle_ms: Number
    produce_limit_bytes_per_second: Annotated[
        Number | None, Field(validation_alias="produce_limit_byte_rate")
    ]
    fetch_bytes_per_second: Annotated[Number, Field(validation_alias="fetch_byte_rate")]
    fetch_throttle_ms: Number
    fetch_limit_bytes_per_second: Annotated[Number | None, Field(validation_alias="fetch_limit_byte_rate")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientUse(Use):
    """Clients with one set of metric tags.

    ``factor`` is the worst of the topics at stake that they wrote to lately, None where they wrote to none.
    ``topics`` are all that they wrote to in the last minute, None where not all of them are known.
    """

    user: Shown
    client_id: Shown
    factor: Ratio | None = None
    topics: Annotated[tuple[Text, ...], Field(max_length=16)] | None = None

    @property
    def name(self) -> str:
        """Its name for people: user and client id, as far as it has them."""
        if self.user and self.client_id:
            return f"{self.user} / {self.client_id}"
        return self.user or self.client_id or "(no client id)"

    def is_called(self, name: str) -> bool:
        """Whether it goes by this name: its client id, its user, or both as they are shown."""
        return name in (self.client_id, self.user, self.name)

    @property
    def held_by_topics(self) -> str | None:
        """The effect of the topics at stake on it, in a word or two; None where it writes to none."""
        if self.factor is None:
            return None
        return "paused" if self.factor == 0 else f"to {self.factor:.2g}"


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client, and its produce requests refused since it is counted apart."""

    principal: Shown
    client_id: Shown
    requests: Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUse(Use):
    """The joint usage of the members of a quota group; its totals are shared by the partitions."""

    name: Text
    request_percentage: Annotated[Number | None, Field(validation_alias="request_limit_percentage")]
    partitions: Count | None
    partitions_led: Count | None
    refused_requests: Count


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """The clients of this broker: the most important of all ``known``, the largest producer first."""

    known: Count
    top: tuple[ClientUse, ...]
    refused: tuple[RefusedClient, ...]
    groups: tuple[GroupUse, ...]


def clients_body(before: ClientFigures, now: ClientFigures, window_seconds: float) -> dict[str, object]:
    """Return the history's body of kind ``clients`` for the window between two reports."""
    earlier = {(client.user, client.client_id): client for client in before.top}
    clients: list[dict[str, object]] = []
    for client in now.top:
        entry: dict[str, object] = {"User": client.user, "ClientId": client.client_id}
        entry |= _use_in_window(earlier.get((client.user, client.client_id)), client, window_seconds)
        if client.topics is not None and window_seconds <= _TOPICS_SECONDS:
            entry["Topics"] = list(client.topics)
        clients.append(entry)
    clients.sort(key=lambda entry: -float(str(entry["ProduceBytesPerSecond"])))
    body: dict[str, object] = {
        "WindowSeconds": window_seconds,
        "Clients": clients,
        "OmittedClients": max(0, now.known - len(clients)),
    }
    if refused := _refused_in_window(before, now):
        body["Refused"] = refused
    if now.groups:
        groups_before = {group.name: group for group in before.groups}
        body["Groups"] = [
            _group_in_window(groups_before.get(group.name), group, window_seconds) for group in now.groups
        ]
    return body


def _use_in_window(before: Use | None, now: Use, window_seconds: float) -> dict[str, object]:
    """The usage between two reports; by its rate where it was not known before, or forgotten since."""
    counts = before is not None and before.produced_bytes <= now.produced_bytes
    known = before if counts else None
    if known is None:
        rate, held_seconds = now.produce_bytes_per_second, now.held_seconds
    else:
        rate = (now.produced_bytes - known.produced_bytes) / window_seconds
        held_seconds = now.held_seconds - known.held_seconds
    entry: dict[str, object] = {"ProduceBytesPerSecond": round(rate, 3)}
    if now.fetched_bytes is not None:
        entry["FetchBytesPerSecond"] = round(_fetched(known, now, now.fetched_bytes, window_seconds), 3)
    entry["ThrottledSeconds"] = round(min(max(held_seconds, 0.0), window_seconds), 3)
    if now.produce_limit_bytes_per_second is not None:
        entry["LimitBytesPerSecond"] = now.produce_limit_bytes_per_second
    return entry


def _fetched(known: Use | None, now: Use, bytes_: int, window_seconds: float) -> float:
    """The bytes per second read between two reports."""
    if known is None or known.fetched_bytes is None or known.fetched_bytes > bytes_:
        return now.fetch_bytes_per_second
    return (bytes_ - known.fetched_bytes) / window_seconds


def _group_in_window(before: GroupUse | None, now: GroupUse, window_seconds: float) -> dict[str, object]:
    refused_before = 0 if before is None else before.refused_requests
    refused = {"RefusedRequests": max(0, now.refused_requests - refused_before)}
    return {"Name": now.name} | _use_in_window(before, now, window_seconds) | refused


def _refused_in_window(before: ClientFigures, now: ClientFigures) -> list[dict[str, object]]:
    """Only of clients that both reports list: the beginning of other counts is unknown."""
    earlier = {(client.principal, client.client_id): client.requests for client in before.refused}
    first_of_all = not before.refused
    found: list[tuple[int, RefusedClient]] = []
    for client in now.refused:
        known = earlier.get((client.principal, client.client_id), 0 if first_of_all else None)
        if known is not None and client.requests > known:
            found.append((client.requests - known, client))
    found.sort(key=lambda entry: (-entry[0], entry[1].principal, entry[1].client_id))
    return [
        {"Principal": client.principal, "ClientId": client.client_id, "Requests": requests}
        for requests, client in found
    ]
