"""Who uses this broker, as the plug-in reports it in the applied-state file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kquota.apply.fields import Fields
from kquota.core.strict_json import printable


@dataclass(frozen=True, slots=True)
class ClientUse:
    """Clients with one set of metric tags; rates and limits in bytes per second, None without a limit.

    ``produced_bytes`` and ``held_seconds`` (above its limit) count since the plug-in knows it.
    """

    user: str
    client_id: str
    produced_bytes: int
    held_seconds: float
    produce_rate: float
    produce_throttle_ms: float
    produce_limit: float | None
    fetch_rate: float
    fetch_throttle_ms: float
    fetch_limit: float | None

    @property
    def name(self) -> str:
        """What people call it: user and client id, as far as it has them."""
        if self.user and self.client_id:
            return f"{self.user} / {self.client_id}"
        return self.user or self.client_id or "(no client id)"


@dataclass(frozen=True, slots=True)
class RefusedClient:
    """A client, and its produce requests refused since the broker started."""

    principal: str
    client_id: str
    requests: int


@dataclass(frozen=True, slots=True)
class GroupUse:
    """A quota group and its limits on this broker; the partitions are those that its totals are shared by."""

    name: str
    produce_limit: float | None
    fetch_limit: float | None
    request_percentage: float | None
    partitions: int | None
    partitions_led: int | None


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """Who uses this broker: those that matter most of all ``known``, the largest producer first."""

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
        known = earlier.get((client.user, client.client_id))
        counts = known is not None and known.produced_bytes <= client.produced_bytes
        rate = (
            (client.produced_bytes - known.produced_bytes) / window_seconds
            if known and counts
            else client.produce_rate
        )
        held = client.held_seconds - (known.held_seconds if known and counts else 0.0)
        entry: dict[str, object] = {
            "User": client.user,
            "ClientId": client.client_id,
            "ProduceBytesPerSecond": round(rate, 3),
            "ThrottledSeconds": round(min(max(held, 0.0), window_seconds), 3),
        }
        if client.produce_limit is not None:
            entry["LimitBytesPerSecond"] = client.produce_limit
        clients.append(entry)
    clients.sort(key=lambda entry: -float(str(entry["ProduceBytesPerSecond"])))
    return {
        "WindowSeconds": window_seconds,
        "Clients": clients,
        "OmittedClients": max(0, now.known - len(clients)),
    }


def _client(fields: Fields) -> ClientUse:
    return ClientUse(
        user=printable(fields.any_text("user")),
        client_id=printable(fields.any_text("client_id")),
        produced_bytes=fields.integer("produced_bytes"),
        held_seconds=fields.number("held_seconds"),
        produce_rate=fields.number("produce_byte_rate"),
        produce_throttle_ms=fields.number("produce_throttle_ms"),
        produce_limit=fields.number_or_null("produce_limit_byte_rate"),
        fetch_rate=fields.number("fetch_byte_rate"),
        fetch_throttle_ms=fields.number("fetch_throttle_ms"),
        fetch_limit=fields.number_or_null("fetch_limit_byte_rate"),
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
        produce_limit=fields.number_or_null("produce_limit_byte_rate"),
        fetch_limit=fields.number_or_null("fetch_limit_byte_rate"),
        request_percentage=fields.number_or_null("request_limit_percentage"),
        partitions=None if fields.is_null("partitions") else fields.integer("partitions"),
        partitions_led=None if fields.is_null("partitions_led") else fields.integer("partitions_led"),
    )
