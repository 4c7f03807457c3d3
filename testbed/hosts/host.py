"""One host: its root directory, its processes, its cable and its volumes."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from testbed.hosts import cgroups, network
from testbed.hosts.commands import run
from testbed.hosts.image import INIT, USER, ensure_image
from testbed.hosts.spec import HostSpec
from testbed.hosts.volumes import Volume
from testbed.loopback.workspace import ENVIRONMENT_MARK

_SSH_PORT = 22
_POLL_SECONDS = 0.05
_END_SECONDS = 60.0
BOOT_TIMEOUT_SECONDS = 300.0
# The shell that has printed its process id becomes systemd-nspawn.
_NAMES = ("sh", "systemd-nspawn")
_ENVIRONMENT = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL=C.UTF-8",
    "HOME=/root",
)
# The systemd of Debian 13 boots under version 1 of control groups only with this setting.
_INIT_ARGUMENTS = ("SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1",)


class HostFailed(Exception):
    """A host did not boot, or a command on it failed; the message holds its output."""


@dataclass
class Host:
    """A host of a fleet. `index` is the last part of its address and unique in the fleet."""

    spec: HostSpec
    fleet_path: Path
    fleet_number: int
    index: int
    volumes: dict[str, Volume] = field(init=False)

    def __post_init__(self) -> None:
        self.volumes = {
            spec.path: Volume(spec, self.directory / "volumes" / f"{number}.img", self.file(spec.path))
            for number, spec in enumerate(self.spec.volumes, start=1)
        }

    @property
    def name(self) -> str:
        """Its host name, which all hosts of the fleet know."""
        return self.spec.name

    @property
    def address(self) -> str:
        """Its address on the fleet's network."""
        return network.address(self.fleet_number, self.index)

    @property
    def directory(self) -> Path:
        """Its specification."""
        return self.fleet_path / "hosts" / self.name

    @property
    def machine(self) -> str:
        """A name that no other host on this machine has."""
        return network.namespace(self.fleet_number, self.index)

    @property
    def console(self) -> Path:
        """Its output while booting."""
        return self.directory / "console.log"

    @property
    def pid(self) -> int | None:
        """Process id of its systemd-nspawn, None when it is not running."""
        try:
            pid = int((self.directory / "pid").read_text())
            process = psutil.Process(pid)
            alive = process.status() != psutil.STATUS_ZOMBIE and process.name() in _NAMES
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return None
        return pid if alive else None

    def file(self, path: str) -> Path:
        """Return where this machine sees a file of the host's disks; not of its memory, as /run is."""
        return self.directory / "root" / path.lstrip("/")

    def inside(self, path: str) -> Path:
        """Return where this machine sees a path of the running host, of its memory (/run, /proc), too.

        Raises:
            HostFailed: it is not running.
        """
        return Path(f"/proc/{self._running_leader()}/root", path.lstrip("/"))

    # --- coming and going -------------------------------------------------------------------------------

    def make(self, known_hosts: dict[str, str], public_key: str) -> None:
        """Make root directory, network and volumes; `known_hosts` maps names to addresses."""
        image = ensure_image(self.spec.suite)
        for part in ("upper", "work", "root"):
            (self.directory / part).mkdir(parents=True)
        # volatile: nothing here is needed after a crash of this machine, so no sync has to wait for its disk
        layers = f"lowerdir={image},upperdir={self.directory}/upper,workdir={self.directory}/work,volatile"
        run("mount", "-t", "overlay", self.machine, "-o", layers, self.directory / "root")
        self.file("/etc/hostname").write_text(f"{self.name}\n")
        names = "".join(f"{address} {name}\n" for name, address in known_hosts.items())
        self.file("/etc/hosts").write_text(f"127.0.0.1 localhost\n{names}")
        user = self.file(f"/home/{USER}").stat()
        for home, owner, group in ((f"/home/{USER}", user.st_uid, user.st_gid), ("/root", 0, 0)):
            keys = self.file(home) / ".ssh" / "authorized_keys"
            keys.parent.mkdir(mode=0o700, exist_ok=True)
            keys.write_text(public_key)
            keys.chmod(0o600)
            for path in (keys.parent, keys):
                os.chown(path, owner, group)
        for volume in self.volumes.values():
            volume.make()
        network.connect(self.fleet_number, self.index)

    def start(self) -> None:
        """Switch it on; returns at once, see `wait_until_booted`."""
        if self.pid is not None:
            raise HostFailed(f"{self.name} is running (process {self.pid})")
        groups = cgroups.make(self.machine)
        shown = [f"--bind-ro={outside}:{inside}" for inside, outside in self.spec.shows.items()]
        nspawn = (
            "systemd-nspawn",
            "--quiet",
            f"--directory={self.directory}/root",
            f"--machine={self.machine}",
            f"--hostname={self.name}",
            f"--network-namespace-path=/run/netns/{self.machine}",
            "--register=no",
            "--keep-unit",
            "--console=pipe",
            "--resolv-conf=off",
            "--timezone=off",
            "--kill-signal=SIGRTMIN+3",
            *shown,
            INIT,
            *_INIT_ARGUMENTS,
        )
        # A group of its own in each hierarchy: otherwise all hosts would share one.
        enter = 'pid=$1; shift; while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs"; shift; done; shift; '
        script = f'{enter}echo $$ > "$pid.new"; mv "$pid.new" "$pid"; exec "$@"'
        (self.directory / "pid").unlink(missing_ok=True)
        with self.console.open("ab") as console:
            subprocess.run(
                [
                    "setsid",
                    "--fork",
                    "sh",
                    "-c",
                    script,
                    "sh",
                    self.directory / "pid",
                    *groups,
                    "--",
                    *nspawn,
                ],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env=os.environ | {ENVIRONMENT_MARK: str(self.fleet_path)},
            )

    def wait_until_booted(self, timeout_seconds: float = BOOT_TIMEOUT_SECONDS) -> None:
        """Wait until its systemd reports that all units are up, and SSH answers.

        Raises:
            HostFailed: it ended, a unit of it failed, or time is up.
        """
        deadline = time.monotonic() + timeout_seconds
        state = ""
        while time.monotonic() < deadline:
            state = self._boot_state()
            if state in {"running", "degraded"} and self.answers(_SSH_PORT):
                break
            time.sleep(_POLL_SECONDS)
        if state == "running":
            return
        failed = self.run("systemctl", "--failed", "--no-legend", check=False).stdout if state else ""
        raise HostFailed(
            f"{self.name}: {state or 'no systemd'} after booting; {failed}\n{self.console_tail()}"
        )

    def stop(self, timeout_seconds: float = 60.0) -> None:
        """Shut it down in order; slow processes are killed."""
        if (pid := self.pid) is not None:
            process = psutil.Process(pid)
            process.terminate()
            psutil.wait_procs([process], timeout=timeout_seconds)
        self.power_off()

    def power_off(self) -> None:
        """Pull its plug: all its processes are gone at once."""
        deadline = time.monotonic() + _END_SECONDS
        while cgroups.processes(self.machine):
            if time.monotonic() > deadline:
                raise HostFailed(f"{self.name} does not end")
            cgroups.kill(self.machine)
            time.sleep(_POLL_SECONDS)

    def plug_network(self, *, connected: bool) -> None:
        """Pull its network cable, or put it in again."""
        network.plug(self.fleet_number, self.index, connected=connected)

    # --- work on it -------------------------------------------------------------------------------------

    def run(self, *command: str, check: bool = True, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command there as root.

        Raises:
            HostFailed: the host is not running, or the command failed and `check` is set.
        """
        done = subprocess.run(
            [*self.entry(), "env", "-i", *_ENVIRONMENT, *command],
            check=False,
            capture_output=True,
            text=True,
            input=stdin,
        )
        if check and done.returncode != 0:
            raise HostFailed(
                f"{self.name}: {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done

    def entry(self) -> list[str]:
        """Return the command that runs the words after it on the host, as root."""
        return ["nsenter", f"--target={self._running_leader()}", "--all", "--"]

    def write(self, path: str, text: str, *, mode: int = 0o644, owner: str = "root:root") -> None:
        """Write a file there, also where only the host sees it, as below /run."""
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1" && chown "$3" "$1"'
        self.run("sh", "-c", script, "sh", path, f"{mode:o}", owner, stdin=text)

    def read(self, path: str) -> str:
        """Return the text of a file there."""
        return self.run("cat", path).stdout

    def answers(self, port: int) -> bool:
        """Whether something on the host accepts connections to that port."""
        with socket.socket() as connection:
            connection.settimeout(1.0)
            return connection.connect_ex((self.address, port)) == 0

    def console_tail(self, lines: int = 20) -> str:
        """The last lines of its console."""
        return (
            "\n".join(self.console.read_text("utf-8", "replace").splitlines()[-lines:])
            if self.console.exists()
            else ""
        )

    def _running_leader(self) -> int:
        leader = self._leader()
        if leader is None:
            raise HostFailed(f"{self.name} is not running\n{self.console_tail()}")
        return leader

    def _leader(self) -> int | None:
        """Its process 1, as this machine counts; the child of systemd-nspawn that became systemd."""
        if (pid := self.pid) is None:
            return None
        try:
            for child in psutil.Process(pid).children():
                if "systemd" in Path(f"/proc/{child.pid}/comm").read_text():
                    return child.pid
        except (psutil.NoSuchProcess, FileNotFoundError):
            return None
        return None

    def _boot_state(self) -> str:
        begun = (self.directory / "pid").exists()
        if begun and self.pid is None:
            raise HostFailed(f"{self.name} ended while booting\n{self.console_tail()}")
        if self._leader() is None:
            return ""
        try:
            return self.run("systemctl", "is-system-running", check=False).stdout.strip()
        except HostFailed:
            return ""
