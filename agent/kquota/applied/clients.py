"""The clients of this broker, as the plug-in reports them in the applied-state file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kquota.applied.fields import Fields
from kquota.core.strict_json import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A client's usage of this broker, and its limit; None without a limit.

    ``produced_bytes`` and ``held_seconds`` (above the limit) count since the plug-in knows them.
    """

    produced_bytes: int
    held_seconds: float
    produce_bytes_per_second: float
    produce_throttle_ms: float
    produce_limit_bytes_per_second: float | None
    fetch_bytes_per_second: float
    fetch_throttle_ms: float
    fetch_limit_bytes_per_second: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientUse(Use):
    """Clients with one set of metric tags."""

    user: str
    client_id: str

    @property
    def name(self) -> str:
        """Its name for people: user and client id, as far as it has them."""
        if self.user and self.client_id:
            return f"{self.user} / {self.client_id}"
        return self.user or self.client_id or "(no client id)"


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client, and its produce requests refused since the broker started."""

    principal: str
    client_id: str
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupUse(Use):
    """The joint usage of the members of a quota group; its totals are shared by the partitions."""

    name: str
    request_percentage: float | None
    partitions: int | None
    partitions_led: int | None
    refused_requests: int


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """The clients of this broker: the most important of all ``known``, the largest producer first."""

    known: int
    top: tuple[ClientUse, ...]
    refused: tuple[RefusedClient, ...]
    groups: tuple[GroupUse, ...]


def parse_client_figures(document: Mapping[str, object]) -> ClientFigures:
    """Read the field ``clients`` of an applied state.

    Raises:
        MalformedAppliedState: a field is missing or of the wrong type.
    """
    fields = Fields(document)
    return ClientFigures(
        known=fields.integer("known"),
        top=tuple(_client(Fields.of(entry, "clients.top")) for entry in fields.entries("top")),
        refused=tuple(_refused(Fields.of(entry, "clients.refused")) for entry in fields.entries("refused")),
        groups=tuple(_group(Fields.of(entry, "clients.groups")) for entry in fields.entries("groups")),
    )


def clients_body(before: ClientFigures, now: ClientFigures, window_seconds: float) -> dict[str, object]:
    """Return the history's body of kind ``clients`` for the window between two reports."""
    earlier = {(client.user, client.client_id): client for client in before.top}
    clients: list[dict[str, object]] = []
    for client in now.top:
        entry: dict[str, object] = {"User": client.user, "ClientId": client.client_id}
        entry |= _use_in_window(earlier.get((client.user, client.client_id)), client, window_seconds)
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
    entry: dict[str, object] = {
        "ProduceBytesPerSecond": round(rate, 3),
        "ThrottledSeconds": round(min(max(held_seconds, 0.0), window_seconds), 3),
    }
    if now.produce_limit_bytes_per_second is not None:
        entry["LimitBytesPerSecond"] = now.produce_limit_bytes_per_second
    return entry


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


def _client(fields: Fields) -> ClientUse:
    return ClientUse(
        user=printable(fields.any_text("user")),
        client_id=printable(fields.any_text("client_id")),
        **_use(fields),
    )


def _refused(fields: Fields) -> RefusedClient:
    return RefusedClient(
        principal=printable(fields.any_text("principal")),
        client_id=printable(fields.any_text("client_id")),
        requests=fields.integer("requests", minimum=1),
    )


def _group(fields: Fields) -> GroupUse:
    return GroupUse(
        name=fields.text("name"),
        request_percentage=fields.number_or_null("request_limit_percentage"),
        partitions=None if fields.is_null("partitions") else fields.integer("partitions"),
        partitions_led=None if fields.is_null("partitions_led") else fields.integer("partitions_led"),
        refused_requests=fields.integer("refused_requests"),
        **_use(fields),
    )


def _use(fields: Fields) -> dict[str, Any]:
    return {
        "produced_bytes": fields.integer("produced_bytes"),
        "held_seconds": fields.number("held_seconds"),
        "produce_bytes_per_second": fields.number("produce_byte_rate"),
        "produce_throttle_ms": fields.number("produce_throttle_ms"),
        "produce_limit_bytes_per_second": fields.number_or_null("produce_limit_byte_rate"),
        "fetch_bytes_per_second": fields.number("fetch_byte_rate"),
        "fetch_throttle_ms": fields.number("fetch_throttle_ms"),
        "fetch_limit_bytes_per_second": fields.number_or_null("fetch_limit_byte_rate"),
    }
