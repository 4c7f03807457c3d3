"""Orders that make no sense are refused before anybody is asked."""

from __future__ import annotations

import pytest
import typer

from kquota.cli.main import application
from tests.unit.cli.command import Host


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
