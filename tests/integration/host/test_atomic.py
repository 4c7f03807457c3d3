"""A replaced file is old or new at any moment, though the writer is killed and the disk is full or fails."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kquota.guard.decision_file import DecisionFile, read

CHILD = Path(__file__).with_name("writer_child.py")
MARKER = "/kquota-the-write-begins"
TRACED = "open,openat,write,fchmod,fsync,fdatasync,close,rename,renameat,renameat2,unlink,unlinkat"


def traced_write(path: Path, trace: Path, *inject: str) -> subprocess.CompletedProcess[str]:
    """Trace a write by an interpreter that takes the same steps at each start.

    Steps are named by how many calls of a kind came before, those of the start included. So no bytecode
    is read or written: other processes keep it where all look for it, and may do so between two starts.
    """
    no_bytecode = ["-B", "-X", f"pycache_prefix={trace.parent / 'no-bytecode'}"]
    command = ["strace", "-qq", "-e", f"trace={TRACED}", "-o", str(trace)]
    for injection in inject:
        command += ["-e", f"inject={injection}"]
    return subprocess.run(
        [*command, sys.executable, *no_bytecode, str(CHILD), str(path), "new"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def steps_of_the_write(trace: Path) -> list[tuple[str, int]]:
    """Return (system call, how many of its kind there were so far) from the marker to the write's end."""
    counts: dict[str, int] = {}
    steps: list[tuple[str, int]] = []
    begun = False
    for line in trace.read_text().splitlines():
        match = re.match(r"(\w+)\(", line)
        if match is None:
            continue
        name = match[1]
        counts[name] = counts.get(name, 0) + 1
        if begun:
            steps.append((name, counts[name]))
        begun = begun or MARKER in line
    return steps


def old_file(directory: Path) -> Path:
    path = directory / "decision.json"
    DecisionFile(path).write({"written": "old"})
    return path


@pytest.mark.accepts("F20")
def test_killed_at_any_system_call_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    dry = tmp_path / "dry"
    dry.mkdir()
    assert traced_write(old_file(dry), tmp_path / "dry.trace").returncode == 0
    steps = steps_of_the_write(tmp_path / "dry.trace")
    names = [name for name, _ in steps]
    assert {"openat", "write", "fchmod", "fsync"} <= set(names)
    assert names.count("fsync") == 2, "the file and its directory"
    assert any(name.startswith("rename") for name in names)

    seen = []
    for number, (name, ordinal) in enumerate(steps):
        directory = tmp_path / str(number)
        directory.mkdir()
        path = old_file(directory)
        trace = tmp_path / f"{number}.trace"
        child = traced_write(path, trace, f"{name}:signal=KILL:when={ordinal}")
        assert child.returncode == -9, child
        assert len(steps_of_the_write(trace)) == number + 1, "killed at another step than meant"
        document = read(path)
        assert document in ({"written": "old"}, {"written": "new"})
        seen.append(document["written"])
        # the next start cleans up, and the next write works
        DecisionFile(path).write({"written": "after"})
        assert read(path) == {"written": "after"}
        assert [entry.name for entry in directory.iterdir()] == ["decision.json"]
    assert seen == sorted(seen, reverse=True), "once new, always new"
    assert set(seen) == {"old", "new"}


@pytest.mark.parametrize("call", ["write", "fchmod", "fsync", "rename"])
def test_a_failing_system_call_leaves_the_old_file_and_names_the_path(tmp_path: Path, call: str) -> None:
    dry = tmp_path / "dry"
    dry.mkdir()
    traced_write(old_file(dry), tmp_path / "dry.trace")
    name, ordinal = next(
        step for step in steps_of_the_write(tmp_path / "dry.trace") if step[0].startswith(call)
    )
    path = old_file(tmp_path)
    child = traced_write(path, tmp_path / "trace", f"{name}:error=EIO:when={ordinal}")
    assert child.stdout == f"{errno.EIO} {path}\n"
    assert read(path) == {"written": "old"}
    assert not list(tmp_path.glob(".decision*")), "the temp file is gone"


@pytest.mark.accepts("F19")
def test_no_space_leaves_the_old_file(tmp_path: Path) -> None:
    # a mount namespace of its own: nothing to unmount afterwards, no privilege needed
    script = f"""
        set -e
        mount -t tmpfs -o size=64k,mode=0755 kquota-test {tmp_path}
        {sys.executable} {CHILD} {tmp_path}/decision.json old
        dd if=/dev/zero of={tmp_path}/filler bs=4k 2>/dev/null || true
        {sys.executable} {CHILD} {tmp_path}/decision.json new || echo "exit $?"
        cat {tmp_path}/decision.json
        ls -A {tmp_path}
        rm {tmp_path}/filler
        {sys.executable} {CHILD} {tmp_path}/decision.json new
        cat {tmp_path}/decision.json
    """
    child = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert child.stdout.splitlines() == [
        f"{errno.ENOSPC} {tmp_path}/decision.json",
        "exit 1",
        '{"written": "old"}',
        "decision.json",
        "filler",
        '{"written": "new"}',
    ]
