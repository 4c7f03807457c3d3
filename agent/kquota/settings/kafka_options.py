"""The ``kafka:`` section: librdkafka's own dotted names, passed untouched.

Two things are kept from operators: the names on which the agent's correctness rests, and the sight of
secrets in anything that is printed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import PlainValidator, ValidationInfo

from kquota.settings.problems import REDACTED, Allowed, Finding, Value, refuse, show

_OWNED: Mapping[str, str] = {
    "usage records are acknowledged by all in-sync replicas and never queued past their interval": """
        acks request.required.acks request.timeout.ms message.timeout.ms delivery.timeout.ms retries
        message.send.max.retries enable.idempotence enable.gapless.guarantee transactional.id max.in.flight
        max.in.flight.requests.per.connection linger.ms queue.buffering.max.ms queue.buffering.max.messages
        queue.buffering.max.kbytes batch.num.messages compression.codec compression.type
        delivery.report.only.error""",
    "readers find a broker's records by the partition that Kafka's own partitioner gives its key": """
        partitioner partitioner_cb""",
    "the agent reads every partition itself, from its beginning, and joins no group": """
        group.id group.instance.id group.protocol group.remote.assignor partition.assignment.strategy
        rebalance_cb consume_cb auto.commit.enable auto.commit.interval.ms enable.auto.commit
        enable.auto.offset.store auto.offset.reset enable.partition.eof isolation.level""",
    "the agent's memory is bounded whatever the topic holds": """
        fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.wait.max.ms
        max.partition.fetch.bytes message.max.bytes receive.message.max.bytes queued.min.messages
        queued.max.messages.kbytes fetch.queue.backoff.ms""",
    "the agent creates its topics with the settings they need": "allow.auto.create.topics",
    "it names the broker and the role: kquota-<node id>-<role>": "client.id",
    "the agent listens to it itself": """
        background_event_cb dr_cb dr_msg_cb error_cb log.queue log_cb logger on_delivery stats_cb
        statistics.interval.ms throttle_cb""",
}
OWNED_NAMES: Mapping[str, str] = {name: why for why, names in _OWNED.items() for name in names.split()}

_SECRET_PARTS = ("password", "passphrase", "secret", "private.key", "key.pem")
SECRET_REFERENCE = "the absolute path of a file, or the name of a systemd credential (LoadCredential=)"
_SERVERS = "host:port of one or more brokers, separated by commas: the listener for internal clients"
_MAX_SECRET_BYTES = 64 * 1024
# paths and file names that only sound like secrets
_HARMLESS_ENDS = (".location", ".file", ".path", ".url")


def is_secret(name: str) -> bool:
    """Return whether the value under this librdkafka name must never be shown."""
    name = name.lower()
    if name == "sasl.oauthbearer.config":  # carries whole tokens
        return True
    return any(part in name for part in _SECRET_PARTS) and not name.endswith(_HARMLESS_ENDS)


def has_credentials(options: Mapping[str, str]) -> bool:
    """Return whether clients with these properties prove who they are."""
    named = ("sasl.", "ssl.certificate.", "ssl.key.", "ssl.keystore.")
    protocol = options.get("security.protocol", "").lower()
    return protocol.startswith("sasl") or any(name.startswith(named) for name in options)


class KafkaOptions(dict[str, str]):
    """librdkafka settings by name; their text form hides secrets."""

    def __repr__(self) -> str:
        return f"KafkaOptions({self.redacted()!r})"

    def redacted(self) -> dict[str, str]:
        """Return the settings with the values of secrets replaced."""
        return {name: REDACTED if is_secret(name) else value for name, value in self.items()}

    def secret_values(self) -> frozenset[str]:
        """Return the values that must never be shown."""
        return frozenset(value for name, value in self.items() if is_secret(name))


def _read_options(value: object) -> KafkaOptions:
    if isinstance(value, KafkaOptions):
        return value
    options, findings = _read_each(value, _option)
    if not any(options.get(name) for name in ("bootstrap.servers", "metadata.broker.list")):
        findings.append(Finding(("bootstrap.servers",), "is missing", _SERVERS))
    if findings:
        refuse(findings)
    return KafkaOptions(options)


def _read_each(
    value: object, read: Callable[[str, object], str | Finding]
) -> tuple[dict[str, str], list[Finding]]:
    """Return what ``read`` makes of each entry whose name operators may set, and all findings."""
    if not isinstance(value, Mapping):
        raise ValueError
    found = {str(name): _owned(str(name)) or read(str(name), entry) for name, entry in value.items()}
    findings = [one for one in found.values() if isinstance(one, Finding)]
    return {name: one for name, one in found.items() if not isinstance(one, Finding)}, findings


def _owned(name: str) -> Finding | None:
    reason = OWNED_NAMES.get(name)
    if reason is None:
        return None
    return Finding((name,), f"is set by kquota itself ({reason})", "leave it out")


def _option(name: str, value: object) -> str | Finding:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float | Decimal):
        return str(value)
    shown = REDACTED if is_secret(name) else show(value)
    return Finding((name,), f"is {shown}", "a text, a number, true or false", shown)


def _read_references(value: object, info: ValidationInfo) -> dict[str, str]:
    """Check the references, and put the secrets behind them into the context, if it has a place for them."""
    context = info.context or {}
    secrets, findings = _read_each(value, lambda name, reference: _secret_behind(name, reference, context))
    if findings:
        refuse(findings)
    if context:
        context["secrets"].update(secrets)
    return dict(cast("Mapping[str, str]", value))


def _secret_behind(name: str, reference: object, context: Mapping[str, Any]) -> str | Finding:
    """Return the secret, or the problem with it. A name is not quoted: it may be the secret itself."""

    def refused(wrong: str) -> Finding:
        return Finding((name,), wrong, SECRET_REFERENCE)

    is_path = isinstance(reference, str) and reference.startswith("/")
    if not isinstance(reference, str) or "\0" in reference or not (is_path or _is_credential(reference)):
        return refused("is neither a path nor the name of a credential")
    if not context:
        return ""
    what = reference if is_path else f"a credential in {context['credentials']}"
    try:
        with Path(context["credentials"], reference).open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if mode & stat.S_IROTH:
                return refused(f"names {what}, which every user may read (mode {stat.S_IMODE(mode):04o})")
            raw = stream.read(_MAX_SECRET_BYTES + 1)
        secret = raw.decode("utf-8").rstrip("\r\n")
    except OSError as error:
        return refused(f"names {what}, which can't be read: {error.strerror}")
    except UnicodeError:
        return refused(f"names {what}, which is not UTF-8 text")
    if not secret or len(raw) > _MAX_SECRET_BYTES:
        return refused(f"names {what}, which is {'empty' if not secret else 'too large for a secret'}")
    return secret


def _is_credential(reference: str) -> bool:
    return reference not in ("", ".", "..") and "/" not in reference


KafkaSection = Annotated[
    KafkaOptions,
    Value(
        "a mapping of librdkafka's names to texts, numbers, true or false",
        _read_options,
        KafkaOptions.redacted,
    ),
]
KafkaSecretsSection = Annotated[
    dict[str, str],
    PlainValidator(_read_references),
    Allowed(f"a mapping of librdkafka's names to, each, {SECRET_REFERENCE}"),
]
