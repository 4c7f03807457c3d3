"""The permissions of agents and operators, as the role kquota_topic gives them, and a forgotten one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from jinja2.nativetypes import NativeEnvironment

from tests.integration.spine.fleet import HISTORY_TOPIC, ORDERS_TOPIC, USAGE_TOPIC

_VARIABLES = Path(__file__).parents[3] / "roles" / "kquota_topic" / "vars" / "main.yml"
_SETTINGS = {
    "kquota_topic_usage_topic": USAGE_TOPIC,
    "kquota_topic_history_topic": HISTORY_TOPIC,
    "kquota_topic_orders_topic": ORDERS_TOPIC,
    "kquota_topic_agents_create": True,
    "kquota_topic_agents_describe": True,
}
_RESOURCES = {
    "TOPIC": ResourceType.TOPIC,
    "GROUP": ResourceType.GROUP,
    "CLUSTER": ResourceType.BROKER,
}


def grant_as_the_role_does(admin: AdminClient, agents: Iterable[str], operators: Iterable[str]) -> None:
    """Give these principals what the role gives agents that may create the topics, and operators."""
    _grant(admin, "kquota_topic_agent_acls", agents)
    _grant(admin, "kquota_topic_operator_acls", operators)


def grant_by_mistake(admin: AdminClient, principal: str) -> None:
    """Permit a principal to write to every topic whose name begins as ours do."""
    pattern = ResourcePatternType.PREFIXED
    _create(admin, [_binding(ResourceType.TOPIC, "__kquota", pattern, principal, AclOperation.WRITE)])


def _grant(admin: AdminClient, variable: str, principals: Iterable[str]) -> None:
    values = yaml.safe_load(_VARIABLES.read_text("utf-8"))
    parts = {name: _rendered(value, {}) for name, value in values.items() if "_acls_of_" in name}
    entries = _rendered(values[variable], parts)
    _create(admin, [one for principal in principals for one in _bindings(principal, entries)])


def _create(admin: AdminClient, bindings: list[AclBinding]) -> None:
    for future in admin.create_acls(bindings).values():
        future.result(timeout=30)


def _bindings(principal: str, entries: Iterable[dict[str, Any]]) -> Iterator[AclBinding]:
    for entry in entries:
        resource, pattern = _RESOURCES[entry["resource"]], ResourcePatternType[entry["pattern"]]
        for operation in entry["operations"]:
            yield _binding(resource, entry["name"], pattern, principal, AclOperation[operation])


def _binding(
    resource: ResourceType, name: str, pattern: ResourcePatternType, principal: str, operation: AclOperation
) -> AclBinding:
    return AclBinding(resource, name, pattern, principal, "*", operation, AclPermissionType.ALLOW)


def _rendered(value: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _rendered(one, parts) for key, one in value.items()}
    if isinstance(value, list):
        return [_rendered(one, parts) for one in value]
    environment = NativeEnvironment()
    environment.filters["bool"] = bool
    return environment.from_string(value).render(_SETTINGS | parts)
