"""A unit test that starts a process fails, in whatever way it starts one."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable

import pytest

from tests.unit.no_processes import ProcessStarted, no_processes

STARTS: dict[str, Callable[[], object]] = {
    "subprocess.Popen": lambda: subprocess.run(["true"], check=True),
    "os.fork": os.fork,
    "os.forkpty": os.forkpty,
    "os.posix_spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "os.system": lambda: os.system("true"),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_is_refused(name: str) -> None:
    with pytest.raises(ProcessStarted, match=name), no_processes():
        STARTS[name]()


def test_a_refusal_that_the_code_under_test_catches_fails_its_test_at_the_end() -> None:
    def careless() -> None:
        with contextlib.suppress(Exception):
            subprocess.run(["true"], check=True)

    def of_a_test() -> None:
        with no_processes():
            careless()

    with pytest.raises(ProcessStarted, match="true"):
        of_a_test()
