"""A fleet: hosts on one network that come and go together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from pydantic import TypeAdapter

from testbed.hosts import network
from testbed.hosts.commands import run
from testbed.hosts.host import Host
from testbed.hosts.image import USER, ensure_image
from testbed.hosts.keeper import KEEPER_LOCK, clear, clear_abandoned
from testbed.hosts.places import HOSTS, all_fleets_locked, unused_number
from testbed.hosts.spec import HostSpec, Name

_REPOSITORY = Path(__file__).resolve().parents[2]
_RECORD = "fleet.json"
_FIRST_INDEX = 11
_MOST_HOSTS = 200
# Each host's systemd watches files with some of root's instances; without any left it does not boot.
_WATCHES = Path("/proc/sys/fs/inotify/max_user_instances")
_WATCHES_OF_A_HOST = 16


def allow_watches(hosts: int, file: Path = _WATCHES) -> None:
    """Raise this machine's limit of inotify instances, until it is booted again, to what these hosts need."""
    if int(file.read_text()) < _WATCHES_OF_A_HOST * hosts:
        file.write_text(str(_WATCHES_OF_A_HOST * hosts))


class FleetFailed(Exception):
    """A fleet could not be made or found; the message has the reason."""


class Fleet(Mapping[str, Host]):
    """The hosts of a fleet, by name; a context manager that removes them."""

    def __init__(self, path: Path, number: int, hosts: Sequence[Host]) -> None:
        self.path = path
        self.number = number
        self._hosts = {host.name: host for host in hosts}
        self._keeper: subprocess.Popen[str] | None = None

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.destroy()

    @property
    def name(self) -> str:
        """Its name, unique on this machine."""
        return self.path.name

    @property
    def key(self) -> Path:
        """The private key that opens SSH on all its hosts."""
        return self.path / "id_ed25519"

    @classmethod
    def create(
        cls,
        name: str,
        specs: Sequence[HostSpec],
        *,
        owner_pid: int | None = None,
        report: Callable[[str], None] = lambda _line: None,
    ) -> Self:
        """Make and boot hosts. They go when process `owner_pid` ends (default: this one; 0: never).

        Raises:
            FleetFailed: there is a fleet of that name, a host is named twice, or this is not root.
            HostFailed: a host does not boot.
            CommandFailed: this machine lacks something.
        """
        TypeAdapter(Name).validate_python(name)
        if os.geteuid() != 0:
            raise FleetFailed(
                "hosts are made of mounts, namespaces and control groups: only root can make them"
            )
        names = [spec.name for spec in specs]
        if len(set(names)) != len(names) or not 1 <= len(names) <= _MOST_HOSTS:
            raise FleetFailed(f"1 to {_MOST_HOSTS} hosts with names of their own are wanted, not {names}")
        for suite in sorted({spec.suite for spec in specs}):
            ensure_image(suite)
        allow_watches(len(specs))
        begun = time.monotonic()
        with all_fleets_locked():
            clear_abandoned()
            fleet = cls._register(name, specs)
            try:
                keeper = fleet._keeper = fleet._start_keeper()
            except BaseException:
                clear(fleet.path)  # otherwise it would stay until the next fleet is made
                raise
        assert keeper.stdin is not None
        with keeper.stdin as creator:  # closed without a word, the keeper removes all there is
            fleet._boot()
            creator.write(f"keep {os.getpid() if owner_pid is None else owner_pid}\n")
        report(f"fleet {name}: {len(fleet)} hosts booted in {time.monotonic() - begun:.1f} s")
        return fleet

    @classmethod
    def open(cls, name: str) -> Self:
        """Return the fleet of that name.

        Raises:
            FleetFailed: there is none.
        """
        path = HOSTS / name
        try:
            record = json.loads((path / _RECORD).read_text("utf-8"))
        except FileNotFoundError:
            raise FleetFailed(
                f"there is no fleet {name}; there are: {', '.join(cls.names()) or 'none'}"
            ) from None
        number = int(record["number"])
        specs = TypeAdapter(list[HostSpec]).validate_python(record["hosts"])
        return cls(path, number, [Host(spec, path, number, _FIRST_INDEX + i) for i, spec in enumerate(specs)])

    @staticmethod
    def names() -> list[str]:
        """Names of the fleets on this machine."""
        return sorted(record.parent.name for record in HOSTS.glob(f"*/{_RECORD}"))

    def ssh(self, host: str) -> list[str]:
        """Return the command that logs in to a host."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
        words = [word for option in options for word in ("-o", option)]
        return ["ssh", "-i", str(self.key), *words, f"{USER}@{self[host].address}"]

    def destroy(self) -> None:
        """Remove the hosts and all that was made for them; it is no error if they are gone."""
        try:
            keeper = psutil.Process(int((self.path / KEEPER_LOCK).read_text()))
            if str(self.path) in keeper.cmdline():
                keeper.send_signal(signal.SIGTERM)
                keeper.wait()
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            pass
        if self.path.exists():  # the keeper was killed
            with all_fleets_locked():
                clear(self.path)
        if self._keeper is not None:
            self._keeper.wait()

    @classmethod
    def _register(cls, name: str, specs: Sequence[HostSpec]) -> Self:
        path = HOSTS / name
        HOSTS.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            raise FleetFailed(f"there is a fleet {name} already; `destroy {name}` removes it")
        taken = {cls.open(other).number for other in cls.names()} | network.bridges()
        number = unused_number(taken, network.NETWORKS)
        path.mkdir()
        record = {"number": number, "hosts": [spec.model_dump(mode="json") for spec in specs]}
        (path / _RECORD).write_text(json.dumps(record), "utf-8")
        return cls.open(name)

    def _start_keeper(self) -> subprocess.Popen[str]:
        # A session of its own: a Ctrl-C at the terminal must not end the one who tidies up after it.
        # It must not hold our stderr either: a process that waits for the end of that would wait for the
        # hosts' end.
        with (self.path / "keeper.log").open("w") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "testbed.hosts.keeper", self.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                cwd=_REPOSITORY,
            )
        assert keeper.stdout is not None
        with keeper.stdout as said:
            if said.readline() != "ready\n":
                raise FleetFailed(f"the keeper of {self.name} did not start")
        return keeper

    def _boot(self) -> None:
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.name, "-f", self.key)
        public_key = self.key.with_suffix(".pub").read_text("utf-8")
        # Shared: a volume that is mounted or taken away here is so on a running host, too. Private before:
        # a copy of a shared mount, as / is under systemd, shares with that, and all would be mounted twice.
        run("mount", "--bind", self.path, self.path)
        run("mount", "--make-private", self.path)
        run("mount", "--make-shared", self.path)
        network.make_bridge(self.number)
        known_hosts = {host.name: host.address for host in self.values()}
        for host in self.values():
            host.make(known_hosts, public_key)
            host.start()
        for host in self.values():
            host.wait_until_booted()
