"""Headless Chromium, steered over its DevTools pipe: a page's content, requests and complaints."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_PATIENCE_SECONDS = 120.0
_COMPLAINTS = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}


@dataclass
class Browser:
    """One tab. `requests` are the addresses that were asked for, `complaints` the messages of its console."""

    _commands: int
    _answers: int
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    _read: bytes = b""
    _number: int = 0
    _session: str | None = None
    _loaded: set[str] = field(default_factory=set)

    def attach(self) -> None:
        """Open the tab and listen to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        # The page gets nothing, for any request.
        self.call(
            "Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0,
            uploadThroughput=0,
        )  # fmt: skip

    def screen(self, width: int, height: int, *, dark: bool, phone: bool) -> None:
        """Be a screen of this many CSS pixels, whose owner likes it dark or light."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=2 if phone else 1, mobile=phone,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path) -> None:
        """Show a local file; return when all of it is there."""
        # By its own loader: the page before it, if only the empty one, may be complete as late as now.
        loader = self.call("Page.navigate", url=page.resolve().as_uri())["loaderId"]
        while loader not in self._loaded:
            self._take()

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in JavaScript."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def photograph(self, file: Path) -> None:
        """Save a picture of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(found["data"]))

    def call(self, method: str, **parameters: object) -> Any:
        """Return the answer to a command of the DevTools protocol."""
        self._number += 1
        command: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self._take()
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    def _take(self) -> dict[str, Any]:
        """Return the next message, after it has been noted."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while b"\0" not in self._read:
                assert selector.select(deadline - time.monotonic()), "Chromium does not answer"
                part = os.read(self._answers, 1 << 20)
                assert part, "Chromium has ended"
                self._read += part
        raw, _, self._read = self._read.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        method = message.get("method")
        if method == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif method in _COMPLAINTS:
            self.complaints.append(json.dumps(message["params"]))
        elif method == "Page.lifecycleEvent" and message["params"]["name"] == "load":
            self._loaded.add(message["params"]["loaderId"])
        return message


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are none of the descriptors that Chromium's will have."""
    ends = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return read, write


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile, gone at the end of the block."""
    program = shutil.which("chromium")
    assert program is not None, "chromium is missing: tools/system-packages.sh browser"
    command_end, commands = _pipe()
    answers, answer_end = _pipe()
    arguments = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]
    arguments += ["--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run"]
    arguments += [f"--user-data-dir={profile}"]
    # Chromium reads commands from descriptor 3 and answers on 4.
    shell = f'exec "$0" "$@" 3<&{command_end} 4>&{answer_end}'
    with (profile.parent / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", shell, program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(command_end, answer_end),
        )
    os.close(command_end)
    os.close(answer_end)
    try:
        browser = Browser(commands, answers)
        browser.attach()
        yield browser
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(commands)
        os.close(answers)
