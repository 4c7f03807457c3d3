"""The decision file is read by the same rules as the broker's plug-in reads it."""

import math
import os
import stat
from decimal import Decimal
from pathlib import Path

import pytest

from kquota.guard.decision_file import MAX_FILE_BYTES, DecisionFile, lease_end_uptime_ms, read
from kquota.host.safe_read import Refusal, Refused


def refused(path: Path) -> Refusal:
    answer = read(path)
    assert isinstance(answer, Refusal), answer
    assert str(path) in str(answer), "the sentence names the file"
    return answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "decision.json"
    DecisionFile(path).write({"state": "THROTTLE", "factor": 0.42, "hold": None})
    return path


def test_what_is_written_is_read_exactly(path: Path) -> None:
    assert read(path) == {"state": "THROTTLE", "factor": Decimal("0.42"), "hold": None}


def test_everyone_may_read_and_only_the_owner_write(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_decision_that_is_no_json_is_not_written(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(ValueError, match="JSON"):
        DecisionFile(path).write({"factor": math.nan})
    with pytest.raises(ValueError, match="larger than readers accept"):
        DecisionFile(path).write({"reasons": "x" * MAX_FILE_BYTES})
    assert path.read_bytes() == before


def test_the_end_of_a_lease_is_that_of_this_boot(tmp_path: Path) -> None:
    path = tmp_path / "decision.json"
    assert lease_end_uptime_ms(path, "this boot") == 0
    DecisionFile(path).write({"boot_id": "this boot", "valid_until_uptime_ms": 42_000})
    assert lease_end_uptime_ms(path, "this boot") == 42_000
    assert lease_end_uptime_ms(path, "another boot") == 0
    DecisionFile(path).write({"boot_id": "this boot", "valid_until_uptime_ms": "soon"})
    assert lease_end_uptime_ms(path, "this boot") == 0


def test_missing(tmp_path: Path) -> None:
    assert refused(tmp_path / "decision.json").cause is Refused.MISSING
    assert refused(tmp_path / "none" / "decision.json").cause is Refused.MISSING


@pytest.mark.accepts("F21")
def test_a_symbolic_link_is_refused(path: Path) -> None:
    real = path.rename(path.with_name("real.json"))
    path.symlink_to(real)
    answer = refused(path)
    assert answer.cause is Refused.NOT_REGULAR
    assert "symbolic link" in answer.reason


@pytest.mark.accepts("F21")
def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "decision.json"
    os.mkfifo(path)
    assert refused(path).cause is Refused.NOT_REGULAR


@pytest.mark.accepts("F21")
@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    answer = refused(path)
    assert answer.cause is Refused.MODE
    assert f"{mode:04o}" in answer.reason


@pytest.mark.accepts("F21")
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o1777])
def test_a_directory_that_others_can_write_is_refused(path: Path, mode: int) -> None:
    path.parent.chmod(mode)
    assert refused(path).cause is Refused.DIRECTORY


@pytest.mark.accepts("F21")
def test_a_stranger_s_file_is_refused_unless_the_directory_is_his(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.fail("needs root to give a file away; run as root")
    os.chown(path, 4711, -1)
    answer = refused(path)
    assert answer.cause is Refused.OWNER
    assert "4711" in answer.reason
    os.chown(path.parent, 4711, -1)
    assert isinstance(read(path), dict)
    os.chown(path, 0, -1)
    assert isinstance(read(path), dict), "root's file is always fine"


@pytest.mark.accepts("F21")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"factor": NaN}',
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b"{} {}",
    ],
)
def test_garbage_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert refused(path).cause is Refused.MALFORMED


@pytest.mark.accepts("F21")
def test_an_oversized_file_is_refused(path: Path) -> None:
    path.write_bytes(b" " * MAX_FILE_BYTES + b"{}")
    assert refused(path).cause is Refused.SIZE
