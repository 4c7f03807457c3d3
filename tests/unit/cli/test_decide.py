"""`kquota decide` on the golden situations: its output is the decision, and nothing else."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from kquota.cli.main import application
from tests.unit.cli.command import kquota
from tests.unit.policy.golden import complaints, replays

A_REPLAY = replays()["figures-15-gb-free"]


def options(arguments: dict[str, Any]) -> list[str]:
    """The command line of a golden situation."""
    found = [
        *("--brokers", ",".join(map(str, arguments["brokers"]))),
        *("--now", arguments["now"]),
        *("--fallback", arguments["fallback"]),
        *("--staleness", str(arguments["staleness_seconds"])),
        *("--future-tolerance", str(arguments["future_tolerance_seconds"])),
    ]
    if arguments["joining"]:
        found += ["--joining", ",".join(map(str, arguments["joining"]))]
    if arguments["self"] is not None:
        found += ["--self", str(arguments["self"])]
    return found


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def in_process(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run it here: sixty processes would take a minute."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    typer.main.get_command(application("decide")).main(["decide", *arguments], standalone_mode=False)
    return out.getvalue()


@pytest.mark.accepts("A10", "A16")
@pytest.mark.parametrize("name", replays())
def test_it_prints_the_golden_decision(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, records = replays()[name], tmp_path / "records.jsonl"
    records.write_text(lines(expected["records"]), "utf-8")
    printed = in_process(["--records", str(records), *options(expected["arguments"])], monkeypatch)
    decision = json.loads(printed)
    assert decision == expected["decision"]
    assert complaints("decision", decision, "offline") == []


def test_records_can_come_from_standard_input() -> None:
    said = kquota(
        "decide", "--records", "-", *options(A_REPLAY["arguments"]), stdin=lines(A_REPLAY["records"])
    )
    assert (said.code, said.err) == (0, "")
    assert said.document == A_REPLAY["decision"]
    assert said.document["mode"] is said.document["sequence"] is said.document["boot_id"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--brokers", "1,x"], "--brokers: 'x' is no broker id; allowed are ids separated by commas: 1,2,3"),
        (["--brokers", "1,-2"], "--brokers: '-2' is no broker id"),
        (["--brokers", "1,²"], "--brokers: '²' is no broker id"),
        (["--brokers", "1,2147483648"], "--brokers: '2147483648' is no broker id"),
        (["--joining", "x"], "--joining: 'x' is no broker id"),
        (["--now", "yesterday"], "--now: "),
        (["--now", "2026-11-20T10:15:30"], "--now: "),
        (
            ["--now", "0001-01-01T00:00:00Z"],
            "--now: '0001-01-01T00:00:00Z' is not in a year from 1971 to 9000",
        ),
        (
            ["--now", "9999-12-31T23:59:59Z"],
            "--now: '9999-12-31T23:59:59Z' is not in a year from 1971 to 9000",
        ),
        (["--staleness", "inf"], "--staleness: inf is no number of seconds from 0 to 1000000000"),
        (["--staleness", "1e11"], "--staleness: 1e+11 is no number of seconds from 0 to 1000000000"),
        (
            ["--future-tolerance", "inf"],
            "--future-tolerance: inf is no number of seconds from 0 to 1000000000",
        ),
        (["--records", "/nowhere"], "/nowhere: can't be read: "),
        (["--records", "/"], "/: can't be read: "),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text(lines(A_REPLAY["records"]), "utf-8")
    base = ["--records", str(records), "--brokers", "1", "--now", "2026-11-20T10:15:30Z"]
    command = typer.main.get_command(application("decide"))
    with pytest.raises(SystemExit) as ended:
        command.main(["decide", *base, *arguments])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"kquota: {complaint}")


def test_a_line_that_is_no_record_is_named_with_its_file(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text('{"key": "1", "value": null}\n{"key": 1}\n', "utf-8")
    said = kquota("decide", "--records", str(records), "--brokers", "1", "--now", "2026-11-20T10:15:30Z")
    assert said.code == 2
    assert said.err.startswith(f"kquota: {records}: line 2: ")
    records.write_bytes(b"\xff\n")
    said = kquota("decide", "--records", str(records), "--brokers", "1", "--now", "2026-11-20T10:15:30Z")
    assert said.code == 2
    assert said.err.startswith(f"kquota: {records}: can't be read: ")


@pytest.mark.accepts("A20")
@pytest.mark.parametrize("stored", [{"timestamp_ms": 0}, {}, {"timestamp_ms": -1}])
def test_a_report_without_a_time_of_storage_is_as_old_as_it_states(
    stored: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form that the help shows has 0: the record was not stored in 1970."""
    plain = [
        {key: value for key, value in record.items() if key != "timestamp_ms"} | stored
        for record in A_REPLAY["records"]
    ]
    records = tmp_path / "records.jsonl"
    records.write_text(lines(plain), "utf-8")
    printed = in_process(["--records", str(records), *options(A_REPLAY["arguments"])], monkeypatch)
    assert json.loads(printed) == A_REPLAY["decision"]
