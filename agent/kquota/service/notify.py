"""Notify systemd of the agent's state (sd_notify); does nothing without a listener."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping

try:
    from systemd import daemon
except ModuleNotFoundError:  # of the extra agent; commands and an agent in a terminal do without
    daemon = None

_log = logging.getLogger("kquota")


class Notifier:
    """The agent's side of Type=notify; without NOTIFY_SOCKET every call does nothing."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read from the environment whether systemd wants notifications, and how often its watchdog.

        Raises:
            ModuleNotFoundError: systemd waits for them, and what they are sent with is not installed.
        """
        self._listening = bool(environ.get("NOTIFY_SOCKET"))
        if self._listening and daemon is None:
            raise ModuleNotFoundError(
                "NOTIFY_SOCKET is set: under systemd the agent needs systemd-python; install kquota[agent]"
            )
        self.watchdog_seconds = _watchdog_seconds(environ)

    def ready(self, sentence: str) -> None:
        """Start-up, or a reload, is complete."""
        self._send(f"READY=1\nSTATUS={_one_line(sentence)}")

    def cycle_completed(self, sentence: str) -> None:
        """Pet the watchdog and show the cycle's sentence: call it after completed cycles only."""
        watchdog = "WATCHDOG=1\n" if self.watchdog_seconds is not None else ""
        self._send(f"{watchdog}STATUS={_one_line(sentence)}")

    def reloading(self) -> None:
        """A reload begins; ``ready`` ends it."""
        now_usec = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={now_usec}")

    def stopping(self, sentence: str) -> None:
        """The agent is about to end."""
        self._send(f"STOPPING=1\nSTATUS={_one_line(sentence)}")

    def _send(self, state: str) -> None:
        if not self._listening:
            return
        try:
            daemon.notify(state)
        except OSError as error:  # systemd itself restarts; it asks again by the watchdog
            _log.debug("systemd could not be notified: %s", error.strerror)


def _watchdog_seconds(environ: Mapping[str, str]) -> float | None:
    """Return after how long a silence systemd kills this process; None: never."""
    microseconds = environ.get("WATCHDOG_USEC", "")
    meant_for = environ.get("WATCHDOG_PID")
    if not microseconds.isascii() or not microseconds.isdigit() or meant_for not in (None, str(os.getpid())):
        return None
    return int(microseconds) / 1_000_000 or None


def _one_line(sentence: str) -> str:
    return " ".join(sentence.split())
