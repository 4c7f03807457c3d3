"""``kquota status --watch``: the status, refreshed every second on a screen of its own, with keys."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any, NoReturn

from rich.live import Live

from kquota.cli.cluster_look import ClusterLook
from kquota.cli.keyboard import Keyboard
from kquota.cli.topic_look import TopicLook
from kquota.display.console import console_for_people
from kquota.display.status_view import Looks, watch_view

_KEY_SECONDS = 0.1
_QUIT = ("q", "Q", "escape")


def watch(
    look: ClusterLook,
    document_of: Callable[[], dict[str, Any]],
    topics: TopicLook,
    *,
    seconds: float,
    looks: Looks,
    ascii_only: bool,
) -> None:
    """Refresh the document at this interval of seconds, until q or Ctrl-C."""
    console = console_for_people()
    last_offset, document = 0, document_of()
    with (
        _ended_by_signals(),
        Keyboard() as keyboard,
        topics,
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        try:
            due, size = 0.0, console.size
            while True:
                now = time.monotonic()
                keys = keyboard.pressed()
                if any(key in _QUIT for key in keys):
                    return
                for key in keys:
                    looks = looks_after(key, looks, last_offset, page=max(console.height // 2, 1))
                if now >= due and not looks.frozen:
                    due, document = now + seconds, document_of()
                    document["local"]["growing_topics"] = topics.growing()
                    keys = ["refresh"]
                if keys or console.size != size:
                    size = console.size
                    view, last_offset = watch_view(document, console, looks, ascii_only=ascii_only)
                    live.update(view, refresh=True)
                look.take(_KEY_SECONDS if keyboard.open else max(due - now, _KEY_SECONDS))
        except KeyboardInterrupt:
            return


def looks_after(key: str, looks: Looks, last_offset: int, *, page: int) -> Looks:
    """Return the view after a key."""
    offset = min(looks.offset, last_offset)
    steps = {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page}
    steps |= {"home": -offset, "g": -offset, "end": last_offset - offset, "G": last_offset - offset}
    if key in steps:
        return replace(looks, offset=min(max(offset + steps[key], 0), last_offset))
    if key == "s":
        return replace(looks, order=looks.order.next(), offset=0)
    if key == "f":
        return replace(looks, troubled_only=not looks.troubled_only, offset=0)
    if key == " ":
        return replace(looks, frozen=not looks.frozen)
    if key in ("?", "h"):
        return replace(looks, show_keys=not looks.show_keys)
    return looks


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let what ends the process end the picture first, so that the terminal is as it was."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
