"""Runs streams side by side, and says how they go."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TextIO

from tools.streams.process import RunningStream, stay_root
from tools.streams.schedule import hopeless, may_begin
from tools.streams.stream import REPOSITORY, Stream

INTERRUPTED = 130
_LOOK_SECONDS = 0.2
_PROGRESS_SECONDS = 30.0
_WIDTH = 110
# Tests clear up after themselves; what does not end by asking is made to.
_PATIENCE: tuple[tuple[signal.Signals, float], ...] = (
    (signal.SIGINT, 90.0),
    (signal.SIGTERM, 30.0),
    (signal.SIGKILL, 10.0),
)


class Run:
    """One run of some streams. Not to be used twice."""

    def __init__(
        self,
        streams: Sequence[Stream],
        *,
        cores: float,
        records: Path,
        show_all: bool = False,
        progress_seconds: float = _PROGRESS_SECONDS,
        patience: Sequence[tuple[signal.Signals, float]] = _PATIENCE,
        output: TextIO = sys.stdout,
    ) -> None:
        """With ``show_all``, print what well-ended streams have said, too, when they end."""
        self._waiting = list(streams)
        self._streams = tuple(streams)
        self._cores = cores
        self._records = records
        self._show_all = show_all
        self._progress_seconds = progress_seconds
        self._patience = patience
        self._output = output
        self._running: list[RunningStream] = []
        self._results: dict[str, str] = {}
        self._ended: dict[str, RunningStream] = {}
        self._failed: set[str] = set()
        self._interruptions = 0
        self._begun_at = time.monotonic()
        self._width = max(len(stream.name) for stream in streams)

    def run(self) -> int:
        """Run them to their end; return 0, 1 if one has failed, or `INTERRUPTED`."""
        self._records.mkdir(parents=True, exist_ok=True)
        # SIGINT also where it is ignored, as in a script's background: the streams would ignore it, too.
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup has it
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._interrupt) for number in numbers}
        try:
            self._go_on()
        finally:
            self._end_all()
            for number, handler in before.items():
                signal.signal(number, handler)
        self._sum_up()
        if self._interruptions:
            return INTERRUPTED
        return 1 if self._failed else 0

    def _go_on(self) -> None:
        told_at = time.monotonic()
        while (self._waiting or self._running) and not self._interruptions:
            for stream in may_begin(self._waiting, [one.stream for one in self._running], self._cores):
                self._waiting.remove(stream)
                self._say(stream.name, f"begins: {_shown(stream.command)}")
                self._running.append(RunningStream(stream, self._records / f"{stream.name}.log"))
            time.sleep(_LOOK_SECONDS)
            self._take_in()
            if time.monotonic() - told_at >= self._progress_seconds:
                told_at = time.monotonic()
                stay_root()
                for one in self._running:
                    self._say(one.stream.name, f"{_minutes(one.seconds)}  {one.last_line()}")

    def _take_in(self) -> None:
        """Note which streams have ended, and which of those that wait will never begin."""
        for one in [one for one in self._running if one.exit_code() is not None]:
            self._running.remove(one)
            if self._interruptions:
                one.send(signal.SIGKILL)  # what the stream itself has left running
            name, code = one.stream.name, one.exit_code()
            well = code in one.stream.good
            if well:
                result = "passed"
            else:
                result = "interrupted" if self._interruptions else f"FAILED, exit code {code}"
                self._failed.add(name)
            self._results[name] = result
            self._ended[name] = one
            self._say(name, f"{result} after {_minutes(one.seconds)}: {_shown([str(one.record)])}")
            if self._show_all or not (well or self._interruptions):
                self._show(one)
        for stream in hopeless(self._waiting, self._failed):
            self._waiting.remove(stream)
            self._results[stream.name] = f"not run: it comes after {' and '.join(stream.after)}"
            self._failed.add(stream.name)

    def _end_all(self) -> None:
        """End what still runs, more firmly step by step; a further interruption goes on to the next step."""
        for number, patience_seconds in self._patience:
            if not self._running:
                return
            for one in self._running:
                self._say(one.stream.name, f"is sent {number.name}, and has {patience_seconds:g} s to end")
                one.send(number)
            heard, deadline = self._interruptions, time.monotonic() + patience_seconds
            while self._running and self._interruptions == heard and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
                self._take_in()

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._interruptions += 1

    def _say(self, name: str, text: str) -> None:
        line = f"{_minutes(time.monotonic() - self._begun_at):>6}  {name:<{self._width}}  {text}"
        print(line[:_WIDTH], file=self._output, flush=True)

    def _show(self, one: RunningStream) -> None:
        rule = f"===== {one.stream.name} "
        print(f"{rule:=<{_WIDTH}}", file=self._output)
        print(one.record.read_text("utf-8", "replace").rstrip(), file=self._output)
        print(f"{f'===== end of {one.stream.name} ':=<{_WIDTH}}", file=self._output, flush=True)

    def _sum_up(self) -> None:
        for stream in self._streams:
            result = self._results.get(stream.name, "not run: interrupted")
            if one := self._ended.get(stream.name):
                result += f" after {_minutes(one.seconds)}, {one.cores:.1f} cores busy"
            self._say(stream.name, result)
        work = sum(one.seconds for one in self._ended.values())
        took = time.monotonic() - self._begun_at
        print(
            f"{_minutes(took)} for what takes {_minutes(work)} one after the other; records are in "
            f"{_shown([str(self._records)])}",
            file=self._output,
            flush=True,
        )


def _shown(command: Sequence[str]) -> str:
    return " ".join(command).replace(f"{REPOSITORY}/", "")


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
