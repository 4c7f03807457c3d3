"""Kafka's own tool for reassignments: librdkafka has no request that moves a replica between log dirs.

The tool gets its properties and its file through memory that only it can open, so that no credentials are
left on a disk however this process ends.
Source: docs/adr/0029-replica-moves.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import javaproperties

NAMES = ("kafka-reassign-partitions.sh", "kafka-reassign-partitions")
"""The tool's names: Kafka's, and that of some packages."""
_HOMES = (Path("/opt/kafka"), Path("/usr"))
_PASSED_ON = ("PATH", "HOME", "JAVA_HOME", "LANG", "LC_ALL", "TMPDIR")
_PATIENCE_SECONDS = 120
_PRIVATE = 0o600
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_REASSIGNED = re.compile(r"^(\S+-\d+): replicas: ", re.MULTILINE)
_ROOT = 0


class ToolFailed(Exception):
    """The tool is missing, or did not do what it was asked for; a sentence."""


def find_tool(home: Path | None) -> Path | None:
    """Return the tool below Kafka's directory; without one, where it usually is."""
    for one in _HOMES if home is None else (home,):
        for name in NAMES:
            if os.access(one / "bin" / name, os.X_OK):
                return one / "bin" / name
    found = [shutil.which(name) for name in NAMES] if home is None else []
    return next((Path(path) for path in found if path is not None), None)


@dataclass(frozen=True)
class ReassignTool:
    """The tool, and how it connects: ``properties`` are a Java client's.

    ``owner`` is the user and group of the log dirs, the broker's: root runs the tool as that user unless no
    other user can write the files that it would run.
    """

    path: Path
    bootstrap: str
    properties: Mapping[str, str]
    owner: tuple[int, int]

    def reassigned(self) -> frozenset[str]:
        """Return the partitions that are being reassigned between brokers, named as in ``visits-3``.

        Raises:
            ToolFailed: the cluster can't be asked.
        """
        return frozenset(_REASSIGNED.findall(self._run("--list")))

    def execute(self, reassignment: Mapping[str, object], throttle: int | None = None) -> None:
        """Start the moves of a file of a reassignment; a replica that is there already stays.

        `throttle` bounds them to bytes per second on each broker, until `verify` takes that back.

        Raises:
            ToolFailed: not all of them have begun.
        """
        bound = [] if throttle is None else ["--throttle", str(throttle)]
        self._run("--execute", "--additional", *bound, file=reassignment)

    def cancel(self, reassignment: Mapping[str, object]) -> None:
        """End reassignments between brokers: each replica stays where it was, but their order may be another.

        Raises:
            ToolFailed: not all of them have ended.
        """
        self._run("--cancel", "--preserve-throttles", file=reassignment)

    def verify(self, reassignment: Mapping[str, object]) -> None:
        """Take the throttles of moves back, once no partition of the cluster is reassigned any more.

        Raises:
            ToolFailed: the cluster can't be asked.
        """
        self._run("--verify", file=reassignment)

    def _run(self, *arguments: str, file: Mapping[str, object] | None = None) -> str:
        own = (
            {}
            if _only_roots(self.path)
            else {"user": self.owner[0], "group": self.owner[1], "extra_groups": []}
        )
        if os.geteuid() != _ROOT:
            own = {}
        with ExitStack() as stack:
            passed = [
                self._in_memory(stack, javaproperties.dumps(dict(self.properties), timestamp=False), own)
            ]
            command = [str(self.path), "--bootstrap-server", self.bootstrap]
            command += ["--command-config", f"/proc/self/fd/{passed[0]}", *arguments]
            if file is not None:
                passed.append(self._in_memory(stack, json.dumps(file), own))
                command += ["--reassignment-json-file", f"/proc/self/fd/{passed[1]}"]
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=_PATIENCE_SECONDS,
                    cwd="/",
                    env=_environment(),
                    pass_fds=passed,
                    **own,  # type: ignore[call-overload]
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise ToolFailed(f"{self.path} failed: {error}") from None
        if done.returncode:
            raise ToolFailed(f"{self.path} failed: {_reason(done.stdout)}")
        return str(done.stdout)

    def _in_memory(self, stack: ExitStack, content: str, own: Mapping[str, object]) -> int:
        file = stack.enter_context(os.fdopen(os.memfd_create("kquota"), "wb"))
        file.write(content.encode())
        file.flush()
        os.fchmod(file.fileno(), _PRIVATE)
        if own:
            os.fchown(file.fileno(), *self.owner)
        return file.fileno()


def _environment() -> dict[str, str]:
    """Return the tool's environment: not the broker's options, which may name ports that are taken."""
    own = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PATH": os.defpath, **own, "KAFKA_HEAP_OPTS": "-Xmx256m", "LOG_DIR": "/tmp"}


def _only_roots(tool: Path) -> bool:
    """Whether root alone can write what the tool runs."""
    home = tool.resolve().parent.parent
    return not any(map(_is_foreign, _files_of(tool.resolve(), home)))


def _files_of(tool: Path, home: Path) -> Iterator[Path]:
    yield from (tool, *home.parents, home)
    if not (home / "libs").is_dir():  # a package: the tools are among those of others
        yield from (home / "bin", home / "share", home / "share/java", *home.glob("bin/kafka-run-class*"))
        yield from Path("/etc/kafka").glob("tools-log4j*")
        libraries: Sequence[Path] = (home / "share/java/kafka",)
    else:
        libraries = tuple(home / name for name in ("bin", "libs", "config"))
    for directory in libraries:
        yield directory
        yield from directory.rglob("*")


def _is_foreign(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    is_sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    return status.st_uid != _ROOT or bool(status.st_mode & _WRITABLE_BY_OTHERS and not is_sticky)


def _reason(output: str) -> str:
    """Return the tool's own word on its failure."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    causes = [
        line.removeprefix("Caused by: ").rpartition("Exception: ")[2]
        for line in lines
        if "Caused by: " in line
    ]
    errors = [line.removeprefix("Error: ") for line in lines if line.startswith(("Error", "Exception"))]
    found = [*errors[:1], *causes[-1:]] or lines[-1:] or ["it said nothing"]
    return ": ".join(found)
