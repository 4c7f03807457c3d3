"""Leases are stamped with the clock that the broker's plug-in judges them by."""

from pathlib import Path

import pytest

from kquota.host.boot_clock import BootClock, BootMoment


def uptime_ms() -> int:
    """Return /proc/uptime, which the plug-in reads; it counts in hundredths of a second, cut off."""
    return round(float(Path("/proc/uptime").read_text().split()[0]) * 1000)


def test_it_is_the_clock_of_proc_uptime() -> None:
    before = uptime_ms()
    now = BootClock().now()
    after = uptime_ms()
    assert before <= now.uptime_ms < after + 10


def test_it_names_the_running_boot() -> None:
    assert BootClock().boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_later_is_in_seconds() -> None:
    assert BootMoment("b", 1_500).later(30) == BootMoment("b", 31_500)
    assert BootMoment("b", 0).later(0.25).uptime_ms == 250


def test_without_a_boot_id_the_error_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        BootClock(tmp_path / "boot_id")
    assert error.value.filename == str(tmp_path / "boot_id")
