"""The clock of leases: time since boot, suspended time included, untouched by the wall clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class BootMoment:
    """A moment on this machine: which boot, and how many milliseconds since it began."""

    boot_id: str
    uptime_ms: int

    def later(self, seconds: float) -> BootMoment:
        """Return the moment ``seconds`` after this one."""
        return BootMoment(self.boot_id, self.uptime_ms + round(seconds * 1000))


class BootClock:
    """Reads CLOCK_BOOTTIME (what /proc/uptime shows) and the id of the running boot."""

    def __init__(self, boot_id_file: Path = _BOOT_ID) -> None:
        """Read the boot id, once: it can't change while this process lives.

        Raises:
            OSError: there is no boot id to read (procfs is not mounted, or ProcSubset=pid hides it).
        """
        self.boot_id = boot_id_file.read_text(encoding="ascii").strip()

    def now(self) -> BootMoment:
        """Return the present moment."""
        return BootMoment(self.boot_id, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)
