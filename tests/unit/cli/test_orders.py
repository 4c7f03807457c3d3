"""Orders that make no sense are refused, most of them before anybody is asked."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer

from kquota.cli.main import application
from kquota.core.membership import Membership
from kquota.core.records import read_event
from kquota.core.timestamps import format_utc
from kquota.core.view import ClusterView
from kquota.publish.operator import Published
from tests.unit.cli.command import Host
from tests.unit.core.golden import SAMPLES

STALENESS_SECONDS = 60.0  # as configured by default


def ordered(host: Host, *arguments: str) -> int:
    """Run it here; the cluster of this host's configuration can't be reached."""
    command = typer.main.get_command(application(arguments[0]))
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--config", str(host.config)])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "length", ["", "0s", "30", "m", "-5m", "1.5h", "31d", "1w", "5 m", "\uff19m", "9999999s"]
)
def test_a_length_of_time_is_needed_that_can_be_read(
    host: Host, length: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ordered(host, "hold", "pause", f"--for={length}", "--reason", "x") == 2
    assert f"--for {length!r}: must be a time such as 90s, 30m, 2h or 1d" in capsys.readouterr().err


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_reason_is_needed(host: Host, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ordered(host, "hold", "open", "--for", "5m", "--reason", reason) == 2
    assert "--reason: must not be empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("quarantine", "3"),
        ("quarantine", "3", "--for", "5m"),
        ("quarantine", "3", "--reason", "x"),
        ("maintenance",),
    ],
)
def test_an_order_needs_its_length_and_reason_or_its_end(
    host: Host, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ordered(host, *arguments) == 2
    assert "--for and --reason are needed (or --end)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("quarantine", "-1", "--end"),
        ("quarantine", "2147483648", "--end"),
        ("quarantine", "three", "--end"),
        ("decommission", "3"),
        ("hold",),
        ("hold", "throttle"),
    ],
)
def test_what_is_missing_or_out_of_range_is_a_usage_error(host: Host, arguments: tuple[str, ...]) -> None:
    assert ordered(host, *arguments) == 2


@pytest.mark.parametrize(
    "arguments", [("hold", "release"), ("decommission", "3", "--reason", "gone"), ("explain",)]
)
def test_a_bad_configuration_is_said(
    host: Host, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    host.configure(interval_seconds=0)
    assert ordered(host, *arguments) == 78
    assert "interval_seconds" in capsys.readouterr().err
    host.configure(kafka={"bootstrap.servers": "127.0.0.1:1", "no.such.property": "1"})
    assert ordered(host, *arguments) == 78
    said = capsys.readouterr().err
    assert said.startswith("kquota: ")
    assert "no.such.property" in said


class Look:
    """A look at a cluster of brokers 1 and 2, in which broker 3 has reported and may report again."""

    def __init__(self, age_seconds: float, *, reports_on: bool = False) -> None:
        self.membership = Membership(0.0)
        self.membership.update(frozenset({1, 2}), 0.0)
        self.view = ClusterView(timedelta(seconds=5))
        self.problems: tuple[str, ...] = ()
        self._reports_on = reports_on
        self._report(age_seconds)

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def wait(self, _timeout_seconds: float) -> bool:
        return True

    def take(self, _timeout_seconds: float) -> None:
        if self._reports_on:
            self._report(0.0)

    def _report(self, age_seconds: float) -> None:
        now = datetime.now(UTC)
        sample = json.loads((SAMPLES / "usage" / "valid" / "a-full-volume.json").read_text("utf-8"))
        value = sample | {"SnapshotAt": format_utc(now - timedelta(seconds=age_seconds))}
        self.view.fold(read_event(b"3", json.dumps(value).encode()), now)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes | None]]:
    """What would have been published."""
    records: list[tuple[bytes, bytes | None]] = []

    def publish(_properties: Any, topic: str, key: bytes, value: bytes | None, _headers: Any) -> Published:
        records.append((key, value))
        return Published(topic, 0, 0)

    monkeypatch.setattr("kquota.cli.orders.publish_operator_record", publish)
    return records


def look_is(monkeypatch: pytest.MonkeyPatch, look: Look) -> None:
    monkeypatch.setattr("kquota.cli.orders.look_at_cluster", lambda _settings: look)


@pytest.mark.accepts("F12")
@pytest.mark.parametrize("age_seconds", [1.0, -1.0])
def test_a_broker_whose_agent_still_reports_is_not_decommissioned(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    published: list[tuple[bytes, bytes | None]],
    capsys: pytest.CaptureFixture[str],
    age_seconds: float,
) -> None:
    look_is(monkeypatch, Look(age_seconds, reports_on=True))
    assert ordered(host, "decommission", "3", "--reason", "gone") == 2
    said = capsys.readouterr().err
    assert "broker 3: its agent still reports: stop kquota-agent there first" in said
    assert published == []


@pytest.mark.accepts("F12")
@pytest.mark.parametrize("stale_in_seconds", [-3600.0, 0.3])
def test_a_broker_that_reports_no_more_is_decommissioned_when_its_report_is_stale(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    published: list[tuple[bytes, bytes | None]],
    capsys: pytest.CaptureFixture[str],
    stale_in_seconds: float,
) -> None:
    look_is(monkeypatch, Look(STALENESS_SECONDS - stale_in_seconds))
    assert ordered(host, "decommission", "3", "--reason", "gone") == 0
    said = capsys.readouterr()
    assert said.out == "broker 3 is decommissioned\n"
    assert ("does its agent report again?" in said.err) is (stale_in_seconds > 0)
    assert published == [(b"3", None)]


def test_forced_nobody_is_asked_before_a_broker_is_decommissioned(
    host: Host, published: list[tuple[bytes, bytes | None]]
) -> None:
    assert ordered(host, "decommission", "3", "--reason", "gone", "--force") == 0
    assert published == [(b"3", None)]
