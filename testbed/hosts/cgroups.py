"""A control group per host, so that limits of its units hold and its processes are found."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

_PARENT = "kquota-hosts"
# A control group has one process's or session's part in the time of this machine's processors, however many
# processes it holds: with other tests running, whole hosts would stand nearly still.
_WEIGHT = {"cpu.shares": 4 * 1024, "cpu.weight": 4 * 100}


def hierarchies() -> list[tuple[Path, bool]]:
    """Mount points of control groups, each with whether it is version 2."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        kind = rest.split()[0]
        if kind in {"cgroup", "cgroup2"}:
            found.append((Path(fields.split()[4]), kind == "cgroup2"))
    return found


def make(name: str) -> list[Path]:
    """Make the groups of a host, `name` being unique on this machine; returns one per hierarchy."""
    made = []
    for root, version_2 in hierarchies():
        parent = root / _PARENT
        group = parent / name
        if version_2:
            parent.mkdir(exist_ok=True)
            _delegate(root)
            _delegate(parent)
        group.mkdir(parents=True, exist_ok=True)
        for directory in (parent, group):
            for key in ("cpuset.cpus", "cpuset.mems"):  # version 1: empty, and no process may enter
                if not version_2 and (file := directory / key).exists() and not file.read_text().strip():
                    file.write_text((directory.parent / key).read_text())
        for key, weight in _WEIGHT.items():
            if (file := parent / key).exists():
                file.write_text(str(weight))
        made.append(group)
    return made


def remove(pattern: str) -> None:
    """Remove the empty groups of all hosts whose name matches, and groups that are not needed any more."""
    for root, _version_2 in hierarchies():
        parent = root / _PARENT
        groups = [group for group in parent.glob(pattern) if group.is_dir()]
        for group in groups:
            below = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
            for directory in (*below, group):
                with contextlib.suppress(
                    OSError
                ):  # a process that is not quite gone; the next removal takes it
                    directory.rmdir()
        with contextlib.suppress(OSError):  # other fleets, or never made
            parent.rmdir()


def processes(pattern: str) -> set[int]:
    """Ids of all processes in the groups of hosts whose name matches."""
    found: set[int] = set()
    for root, _version_2 in hierarchies():
        for file in (root / _PARENT).glob(f"{pattern}/**/cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(map(int, file.read_text().split()))
    return found


def kill(pattern: str) -> None:
    """Kill all processes in the groups of hosts whose name matches."""
    for pid in processes(pattern):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _delegate(group: Path) -> None:
    controllers = (group / "cgroup.controllers").read_text().split()
    for controller in {"cpu", "cpuset", "io", "memory", "pids"} & set(controllers):
        # Refused where this machine is itself a container with processes in its root: no limits, then.
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")
