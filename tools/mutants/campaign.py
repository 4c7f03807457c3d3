"""A pytest plug-in that tries mutants: it collects the tests once, and forks for each mutant.

mutmut has made the mutants next to their functions, and noted which tests reach which function. The variable
``MUTANT_UNDER_TEST`` switches one on; a child runs the tests that reach it, until one fails. Its exit code is
kept where mutmut keeps them. Without ``MUTANTS_TO_TRY``, a file of names, this only makes tests quicker.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, settings

NO_TEST_REACHES_IT = 33
# The time of a mutant, relative to that of its tests together, and the addition for a busy machine.
PATIENCE = 10
MORE_SECONDS = 60

# A failure is enough; its smallest example is not needed.
settings.register_profile("a failure is enough", phases=(Phase.explicit, Phase.generate), database=None)
settings.load_profile("a failure is enough")


@dataclass(frozen=True, slots=True)
class Child:
    """A process that tries one mutant."""

    meta: Path
    mutant: str
    temporary: str


class Campaign:
    """Tries mutants on the tests of one session, several at a time."""

    def __init__(self, session: pytest.Session) -> None:
        stats = json.loads(Path("mutmut-stats.json").read_text("utf-8"))
        self._seconds: Mapping[str, float] = stats["duration_by_test"]
        self._reach: Mapping[str, list[str]] = stats["tests_by_mangled_function_name"]
        self._session = session
        self._items = {item.nodeid: item for item in session.items}
        self._children: dict[int, Child] = {}
        self._tried = 0

    def run(self, mutants: Sequence[str], at_a_time: int) -> None:
        """Try these, quick ones first; a name is ``kquota.room.module.mangled_function__mutmut_7``."""
        for mutant in sorted(mutants, key=lambda mutant: sum(map(self._seconds_of, self._tests_of(mutant)))):
            meta = Path("src", *mutant.split(".")[:-1]).with_suffix(".py.meta")
            tests = sorted(self._tests_of(mutant), key=self._seconds_of)
            items = [self._items[test] for test in tests if test in self._items]
            if not items:
                self._keep(meta, mutant, NO_TEST_REACHES_IT)
                continue
            while len(self._children) >= at_a_time:
                self._wait()
            temporary = tempfile.mkdtemp(prefix="kquota-mutant-")
            if (pid := os.fork()) == 0:
                self._try(mutant, items, sum(map(self._seconds_of, tests)), temporary)
            self._children[pid] = Child(meta, mutant, temporary)
        while self._children:
            self._wait()
        print(f"\n{self._tried} mutants tried")

    def _tests_of(self, mutant: str) -> list[str]:
        return self._reach.get(mutant.rpartition("__mutmut_")[0], [])

    def _seconds_of(self, test: str) -> float:
        return self._seconds.get(test, 0.0)

    def _try(self, mutant: str, items: Sequence[pytest.Item], seconds: float, temporary: str) -> None:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        limit = int(PATIENCE * seconds) + MORE_SECONDS
        signal.alarm(limit)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        os.environ.update(MUTANT_UNDER_TEST=mutant, PYTEST_DEBUG_TEMPROOT=temporary)
        exit_code = 3
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                if self._fails(item, following) and self._fails(item, following):
                    break
            exit_code = 1 if self._session.testsfailed else 0
        finally:
            os._exit(exit_code)

    def _fails(self, item: pytest.Item, following: pytest.Item | None) -> bool:
        """Run one test. On a machine as busy as this one a single failure may be for want of time."""
        self._session.testsfailed = 0
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return self._session.testsfailed > 0

    def _wait(self) -> None:
        pid, status = os.wait()
        if (child := self._children.pop(pid, None)) is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # the remains of a test
        shutil.rmtree(child.temporary, ignore_errors=True)
        self._keep(child.meta, child.mutant, os.waitstatus_to_exitcode(status))

    def _keep(self, meta: Path, mutant: str, exit_code: int) -> None:
        kept = json.loads(meta.read_text("utf-8"))
        kept["exit_code_by_key"][mutant] = exit_code
        meta.write_text(json.dumps(kept), "utf-8")
        self._tried += 1
        if self._tried % 100 == 0:
            print(self._tried, flush=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Try the mutants instead of running the tests."""
    names = os.environ.get("MUTANTS_TO_TRY")
    if names is None:
        return None
    Campaign(session).run(Path(names).read_text("utf-8").split(), int(os.environ["MUTANTS_CHILDREN"]))
    return True
