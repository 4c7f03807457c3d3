"""Orders that make no sense are refused, most of them before anybody is asked."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer

from kquota.cli.main import application
from kquota.cli.orders import user
from kquota.formats.records import read_event
from kquota.kafka.operator_producer import Published
from kquota.policy.membership import Membership
from kquota.policy.timestamps import format_utc
from kquota.policy.view import ClusterView
from tests.unit.cli.command import Host
from tests.unit.policy.golden import sample
from tests.unit.trust.issuing import Authority

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
        self.membership = Membership(timedelta(0), timedelta(0))
        self.membership.update(frozenset({1, 2}), datetime.now(UTC), {})
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
        usage = sample("usage", "a-full-volume")
        value = usage | {"SnapshotAt": format_utc(now - timedelta(seconds=age_seconds))}
        self.view.fold(read_event(b"3", json.dumps(value).encode()), now)


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes | None]]:
    """The records that would have been published."""
    records: list[tuple[bytes, bytes | None]] = []

    def publish(
        _properties: Any, topic: str, key: bytes, value: bytes | None, _headers: Any, sign: Any
    ) -> Published:
        assert sign is None, "nothing is asked of the cluster where records are not signed"
        records.append((key, value))
        return Published(topic, 0, 0, round(time.time() * 1000))

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
    assert published == [(b"decommission/3", gone())]


def gone() -> bytes:
    return json.dumps({"Reason": "gone", "Actor": user()}, separators=(",", ":")).encode()


def test_forced_nobody_is_asked_before_a_broker_is_decommissioned(
    host: Host, published: list[tuple[bytes, bytes | None]]
) -> None:
    assert ordered(host, "decommission", "3", "--reason", "gone", "--force") == 0
    assert published == [(b"decommission/3", gone())]


LEASE_SECONDS = 30.0


class Agent:
    """Takes an order of maintenance up when it was looked for a few times."""

    def __init__(
        self, host: Host, monkeypatch: pytest.MonkeyPatch, lease_seconds: float, **changes: Any
    ) -> None:
        host.decide(LEASE_SECONDS, **changes)
        looks = 0

        def look_again(_seconds: float) -> None:
            nonlocal looks
            looks += 1
            if looks == 3:
                host.decide(lease_seconds, **changes)

        monkeypatch.setattr("kquota.cli.planned_stop.time.sleep", look_again)


@pytest.mark.parametrize(
    ("length", "lease_seconds"), [("10s", LEASE_SECONDS), ("30m", 1800.0), ("1d", 86_400.0), ("3d", 86_400.0)]
)
def test_a_planned_stop_is_announced_when_the_lease_outlasts_it(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    published: list[tuple[bytes, bytes | None]],
    capsys: pytest.CaptureFixture[str],
    length: str,
    lease_seconds: float,
) -> None:
    Agent(host, monkeypatch, lease_seconds)
    assert ordered(host, "maintenance", "--for", length) == 0
    said = capsys.readouterr()
    assert said.out.startswith("broker 1 is in maintenance until ")
    assert ("a lease runs for a day at most" in said.err) is (length == "3d")
    assert [key for key, _ in published] == [b"maintenance/1"]


def test_what_is_held_ends_with_its_hold_and_no_later_lease_is_waited_for(
    host: Host, monkeypatch: pytest.MonkeyPatch, published: list[tuple[bytes, bytes | None]]
) -> None:
    until = format_utc(datetime.now(UTC) + timedelta(minutes=5))
    hold = {"action": "pause", "until": until, "reason": "a move", "actor": "alice"}
    Agent(host, monkeypatch, 300.0, hold=hold, state="PAUSE", factor=0.0)
    assert ordered(host, "maintenance", "--for", "2h") == 0
    assert len(published) == 1


@pytest.mark.parametrize("found", ["a short lease", "nothing"])
def test_an_agent_that_does_not_take_the_order_up_is_not_to_be_stopped(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    published: list[tuple[bytes, bytes | None]],
    capsys: pytest.CaptureFixture[str],
    found: str,
) -> None:
    monkeypatch.setattr("kquota.cli.planned_stop.PATIENCE_SECONDS", 0.3)
    if found == "a short lease":
        host.decide(LEASE_SECONDS)
    assert ordered(host, "maintenance", "--for", "30m") == 1
    assert "don't stop the agent yet: " in capsys.readouterr().err
    assert len(published) == 1, "the order stands"


def test_about_a_broker_elsewhere_its_own_host_is_asked(
    host: Host, published: list[tuple[bytes, bytes | None]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ordered(host, "maintenance", "--broker", "2", "--for", "30m") == 0
    assert "look at the lease there: kquota decision" in capsys.readouterr().out
    assert [key for key, _ in published] == [b"maintenance/2"]


@pytest.mark.parametrize(
    ("behind", "valid_days", "said"),
    [
        (timedelta(0), 1, None),
        (timedelta(minutes=4), 1, None),
        (timedelta(minutes=6), 1, "its signer's clock is ahead of the brokers'"),
        (timedelta(minutes=-6), 1, "or its signer's clock is behind the brokers'"),
        (timedelta(0), -1, "its signer's certificate was not valid when it was written"),
    ],
)
def test_an_order_that_agents_refuse_is_no_success(
    host: Host,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behind: timedelta,
    valid_days: int,
    said: str | None,
) -> None:
    """``behind`` is how far the brokers' clock is behind this host's."""

    def publish(
        _properties: Any, topic: str, _key: bytes, _value: bytes | None, headers: Any, sign: Any
    ) -> Published:
        appended_ms = round((datetime.now(UTC) - behind).timestamp() * 1000)
        return Published(topic, 0, 7, appended_ms, [*headers, *sign("a-cluster", 1)], "a-cluster")

    monkeypatch.setattr("kquota.cli.orders.publish_operator_record", publish)
    now, long = datetime.now(UTC), timedelta(days=9)
    authority = Authority(tmp_path, valid=(now - long, now + long))
    valid = now - timedelta(days=2), now + timedelta(days=valid_days)
    jane = authority.issue("kquota://*/operator/jane", valid=valid)
    files = {"certificate_file": jane.certificate, "key_file": jane.key, "ca_file": authority.file}
    host.configure(signing={"mode": "required"} | {name: str(path) for name, path in files.items()})
    operator = tmp_path / "operator.properties"
    operator.touch(mode=0o600)
    operator.write_text(
        f"bootstrap.servers=127.0.0.1:1\nkquota.signing.certificate={jane.certificate}\n"
        f"kquota.signing.key={jane.key}\n",
        "utf-8",
    )
    done = host.run("hold", "release", "--command-config", str(operator))
    assert ("the hold is released" in done.out) == (said is None), done.err
    assert done.code == (0 if said is None else 1)
    if said is not None:
        assert "the order is in topic __kquota_orders, and agents do not obey it" in done.err
        assert said in " ".join(done.err.split())


def test_an_order_that_ends_too_late_for_the_brokers_clock_is_no_success(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(_properties: Any, topic: str, *_record: Any, sign: Any) -> Published:
        assert sign is None
        behind = datetime.now(UTC) - timedelta(hours=1)
        return Published(topic, 0, 7, round(behind.timestamp() * 1000))

    monkeypatch.setattr("kquota.cli.orders.publish_operator_record", publish)
    done = host.run("hold", "open", "--for", "30d", "--reason", "a test")
    assert done.code == 1
    assert "Until: must be at most 30 days after the order was given" in done.err
