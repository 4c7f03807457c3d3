"""systemd gets its notifications, on a real socket; no other process does."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kquota.service.notify import Notifier


class Systemd:
    """The receiving end of a notification socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(60)

    def heard(self) -> list[str]:
        return self.socket.recv(4096).decode().splitlines()

    def silent(self) -> bool:
        self.socket.setblocking(False)
        try:
            return not self.socket.recv(4096)
        except BlockingIOError:
            return True
        finally:
            self.socket.settimeout(60)


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Systemd]:
    path = tmp_path / "notify"
    monkeypatch.setenv("NOTIFY_SOCKET", str(path))
    systemd = Systemd(path)
    yield systemd
    systemd.socket.close()


def test_the_life_of_a_service(systemd: Systemd) -> None:
    notifier = Notifier({**os.environ, "WATCHDOG_USEC": "15000000"})
    notifier.ready("OPEN: all volumes have room")
    assert systemd.heard() == ["READY=1", "STATUS=OPEN: all volumes have room"]
    notifier.cycle_completed("PAUSE: /dev/sda1\nis full")
    assert systemd.heard() == ["WATCHDOG=1", "STATUS=PAUSE: /dev/sda1 is full"]
    before = time.monotonic_ns() // 1000
    notifier.reloading()
    first, second = systemd.heard()
    assert first == "RELOADING=1"
    name, _, microseconds = second.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before <= int(microseconds) <= time.monotonic_ns() // 1000
    notifier.stopping("bye")
    assert systemd.heard() == ["STOPPING=1", "STATUS=bye"]


def test_no_watchdog_is_petted_where_there_is_none(systemd: Systemd) -> None:
    Notifier(os.environ).cycle_completed("fine")
    assert systemd.heard() == ["STATUS=fine"]


def test_nothing_is_told_where_nobody_listens(systemd: Systemd) -> None:
    notifier = Notifier({})
    notifier.ready("x")
    notifier.cycle_completed("x")
    notifier.reloading()
    notifier.stopping("x")
    assert systemd.silent()


def test_a_socket_that_went_away_is_no_error(systemd: Systemd) -> None:
    notifier = Notifier(os.environ)
    systemd.socket.close()
    notifier.cycle_completed("fine")


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "15000000"}, 15.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog_s_interval(environ: dict[str, str], seconds: float | None) -> None:
    assert Notifier(environ).watchdog_seconds == seconds
