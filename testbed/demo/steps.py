"""The step in progress, and how long each step took: live on a terminal, in lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Of the line on a terminal: the turning sign, the time, and the space between them.
_TAKEN_COLUMNS = 12


class Step:
    """One of the steps, while it goes on."""

    def __init__(self, console: Console, what: str) -> None:
        self.what = what
        self._console = console
        self._begun = time.monotonic()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._shown = self._progress.add_task(what, total=None)

    @contextmanager
    def showing(self) -> Iterator[None]:
        """Report its beginning and, if it succeeds, how long it took."""
        if not self._console.is_terminal:
            self._console.print(f"{self.what} …")
        with self._progress:
            yield
        self._console.print(f"{self.seconds:4.0f} s  {self.what}")

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.monotonic() - self._begun

    def part(self, text: str) -> None:
        """A part of it begins, which is worth a line of its own."""
        self._console.print(f"        {self.seconds:4.0f} s  {text}", soft_wrap=True)

    def now(self, text: str) -> None:
        """Its present action; only a terminal shows it, until the next."""
        room = self._console.width - _TAKEN_COLUMNS
        self._progress.update(self._shown, description=f"{self.what}: {text}"[:room])


class Steps:
    """The steps of one run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = time.monotonic()

    @contextmanager
    def step(self, what: str) -> Iterator[Step]:
        """Run the block as a step."""
        step = Step(self._console, what)
        with step.showing():
            yield step

    def end(self) -> None:
        """Report how long all of them took."""
        self._console.print(f"{time.monotonic() - self._begun:4.0f} s  in all")
