"""The life of the probe process: it serves one owner, costs little, and is neither lost nor left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.disks import probe_process
from kquota.disks.probe import LogDirSampler
from kquota.disks.server_properties import parse_broker_properties
from kquota.disks.volume_watch import VolumeWatch
from kquota.guard.event_queue import readable
from tests.integration.observe.conftest import MakeDisk
from tests.integration.waiting import eventually

HANG_SECONDS = 1.0


def is_alive(process_id: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process_id}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def sampled_at(sampler: LogDirSampler) -> float:
    (look,) = sampler.latest().values()
    return look.sampled_at_monotonic or 0.0


@pytest.fixture
def sampler(tmp_path: Path) -> Iterator[LogDirSampler]:
    with LogDirSampler([str(tmp_path)], interval_seconds=0.02, hang_seconds=HANG_SECONDS) as started:
        eventually(lambda: sampled_at(started) > 0)
        yield started
    eventually(lambda: started.abandoned == 0)


def process_of(sampler: LogDirSampler) -> int:
    assert sampler.process_id is not None
    return sampler.process_id


def test_closing_leaves_no_process(sampler: LogDirSampler) -> None:
    process_id = process_of(sampler)
    sampler.close()
    assert not is_alive(process_id)
    assert (sampler.process_id, sampler.abandoned) == (None, 0)


def test_the_process_gets_no_secrets_and_no_files_of_its_owner(sampler: LogDirSampler) -> None:
    process = Path(f"/proc/{process_of(sampler)}")
    assert process.joinpath("environ").read_bytes() in (b"", b"LC_CTYPE=C.UTF-8\0")
    eventually(lambda: {entry.name for entry in process.joinpath("fd").iterdir()} == {"0", "1", "2"})


def look_again(sampler: LogDirSampler) -> None:
    before = sampled_at(sampler)
    eventually(lambda: sampled_at(sampler) > before)


def alarmed(sampler: LogDirSampler) -> bool:
    return readable(0.0, sampler.alarm)


def test_a_band_that_is_left_wakes_the_owner_once(sampler: LogDirSampler) -> None:
    ((log_dir, look),) = sampler.latest().items()
    sampler.wake_at({log_dir: (-1, look.capacity_bytes + 1)})
    look_again(sampler)
    assert not alarmed(sampler)
    for _ in range(2):
        sampler.wake_at({log_dir: (look.capacity_bytes, look.capacity_bytes + 1)})
        eventually(lambda: alarmed(sampler))
        look_again(sampler)
        assert not alarmed(sampler), "an answer ends the alarm"
    sampler.wake_at({})
    look_again(sampler)
    assert not alarmed(sampler)


def test_a_disk_that_fills_beyond_its_band_wakes_the_owner(make_disk: MakeDisk) -> None:
    log_dir = make_disk("filling").log_dir()
    with LogDirSampler([str(log_dir)]) as sampler:
        eventually(lambda: sampled_at(sampler) > 0)
        (look,) = sampler.latest().values()
        low = look.available_bytes - (1 << 20)
        sampler.wake_at({str(log_dir): (low, look.capacity_bytes + 1)})
        look_again(sampler)
        assert not alarmed(sampler)
        (log_dir / "ballast").write_bytes(bytes(2 << 20))
        eventually(lambda: alarmed(sampler))
        (look,) = sampler.latest().values()
        assert look.available_bytes <= low


def test_a_process_that_is_started_again_wakes_its_owner_too(sampler: LogDirSampler) -> None:
    ((log_dir, look),) = sampler.latest().items()
    bands = {log_dir: (-1, look.capacity_bytes + 1)}
    sampler.wake_at(bands)
    os.kill(process_of(sampler), signal.SIGKILL)
    before = time.monotonic()
    eventually(lambda: sampled_at(sampler) > before)
    assert not alarmed(sampler)
    sampler.wake_at({log_dir: (look.capacity_bytes, look.capacity_bytes + 1)})
    eventually(lambda: alarmed(sampler))


@pytest.mark.accepts("A11")
def test_a_killed_process_is_started_again(sampler: LogDirSampler) -> None:
    first = process_of(sampler)
    os.kill(first, signal.SIGKILL)
    before = time.monotonic()
    eventually(lambda: sampled_at(sampler) > before)
    assert process_of(sampler) != first
    assert sampler.restarts == 1
    assert sampler.silence is None


def test_a_stopped_process_is_replaced(sampler: LogDirSampler) -> None:
    first = process_of(sampler)
    os.kill(first, signal.SIGSTOP)
    before = time.monotonic()
    eventually(lambda: sampled_at(sampler) > before)
    eventually(lambda: not is_alive(first))


def test_an_owner_that_was_away_blames_no_disk(sampler: LogDirSampler) -> None:
    time.sleep(3 * HANG_SECONDS)
    (look,) = sampler.latest().values()
    assert (look.waiting_seconds, sampler.silence, sampler.restarts) == (0, None, 0)


def test_a_process_that_was_frozen_blames_no_disk(sampler: LogDirSampler) -> None:
    os.kill(process_of(sampler), signal.SIGSTOP)
    time.sleep(3 * HANG_SECONDS)
    os.kill(process_of(sampler), signal.SIGCONT)
    for _ in range(10):
        (look,) = sampler.latest().values()
        assert (look.waiting_seconds < HANG_SECONDS, sampler.silence) == (True, None)
        time.sleep(0.1)  # two looks without an answer are no silence, and a busy machine may take as long


def test_the_process_ends_when_its_owner_dies(tmp_path: Path) -> None:
    program = (
        "import sys, time; from kquota.disks.probe import LogDirSampler\n"
        "sampler = LogDirSampler([sys.argv[1]]); sampler.start()\n"
        "print(sampler.process_id, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        process_id = int(owner.stdout.readline())
        assert is_alive(process_id)
        owner.kill()
        owner.wait()
        eventually(lambda: not is_alive(process_id))


@pytest.mark.parametrize("program", ["import sys; sys.exit(1)", "while input: print('0 x end', flush=True)"])
def test_a_process_that_makes_no_sense_is_told_as_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    script = tmp_path / "program.py"
    script.write_text(program)
    monkeypatch.setattr(probe_process, "__file__", str(script))
    begun = time.monotonic()
    with LogDirSampler([str(tmp_path)], hang_seconds=HANG_SECONDS) as sampler:

        def is_silent() -> bool:
            sampler.latest()
            return sampler.silence is not None

        eventually(is_silent)
        assert sampler.silence == f"the probe process has not answered for {HANG_SECONDS:g} s"
        # Trying again is bounded in time: at most once a second.
        assert sampler.restarts <= 3 + (time.monotonic() - begun)
    eventually(lambda: sampler.abandoned == 0)


def test_where_no_process_can_be_started_the_first_start_says_so_and_later_ones_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sys.executable
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    sampler = LogDirSampler([str(tmp_path)], hang_seconds=HANG_SECONDS)
    with pytest.raises(FileNotFoundError):
        sampler.start()
    sampler.latest()
    monkeypatch.setattr(sys, "executable", real)
    eventually(lambda: sampled_at(sampler) > 0)
    sampler.close()


@pytest.mark.parametrize(("interval", "hang"), [(0.0, 1.0), (0.2, 0.0)])
def test_times_must_be_positive(interval: float, hang: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        LogDirSampler([], interval_seconds=interval, hang_seconds=hang)


def test_watching_twelve_log_dirs_costs_little(tmp_path: Path) -> None:
    log_dirs = [tmp_path / str(number) for number in range(12)]
    for log_dir in log_dirs:
        log_dir.mkdir()
    text = f"node.id=1\nlog.dirs={','.join(map(str, log_dirs))}\n"
    properties = parse_broker_properties(text.encode(), Path("server.properties"))
    with VolumeWatch(properties) as watch:
        assert watch.wait_for_samples(60)
        process_id = watch.sampler.process_id

        def used_seconds() -> float:
            ticks = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[11:13]
            return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") + time.process_time()

        started, used = time.monotonic(), used_seconds()
        for _ in range(25):
            watch.observe()
            time.sleep(0.2)
        share = (used_seconds() - used) / (time.monotonic() - started)
        resident_kib = next(
            int(line.split()[1])
            for line in Path(f"/proc/{process_id}/status").read_text().splitlines()
            if line.startswith("VmRSS:")
        )
    # Some 0.5 % of a core and 10 MB where this was written; a thread that spins would show as 100 %.
    assert share < 0.03
    assert resident_kib < 20 * 1024
