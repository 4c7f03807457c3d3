"""Root directories of Debian suites that hosts boot from: made once, kept outside the source tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

from testbed.hosts.commands import CommandFailed, run
from testbed.hosts.places import cache, locked

USER = "ansible"
"""The user of logins over SSH; may become root by sudo."""

# The usual packages of a machine that runs brokers. Nothing of kquota, and no Kafka.
_PACKAGES = (
    "acl",
    "ca-certificates",
    "chrony",
    "dbus",
    "default-jre-headless",
    "e2fsprogs",
    "iproute2",
    "less",
    "logrotate",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "python3-venv",
    "sudo",
    "systemd",
    "systemd-sysv",
    "xfsprogs",
)
# Of no use on a host that others made the network, the disks and the clock of.
_MASKED = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
    "e2scrub_reap.service",
    "getty@.service",
    "systemd-firstboot.service",
    "systemd-networkd.service",
    "systemd-networkd.socket",
    "systemd-networkd-wait-online.service",
    "systemd-timesyncd.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
)
# All hosts share the clock of the machine, which none of them may set: each is its own best source of time.
_CHRONY = "local stratum 8\nmakestep 1 3\ndriftfile /var/lib/chrony/chrony.drift\n"
_CHRONY_UNIT = "[Unit]\nConditionCapability=\n"
_CHRONY_OPTIONS = 'DAEMON_OPTS="-F 0 -x"\n'
# PID 1 of a host. Under version 1 of control groups, nspawn hands the controllers over read-only, and limits
# such as MemoryMax= would be ignored in silence. nspawn lays a boot id of the host's own over the machine's.
# The systemd of Debian 12 does not carry it into a service's own /proc (ProtectProc=), where an agent would
# see another boot than the broker: there, all see the machine's.
_INIT = """\
#!/bin/sh
for controller in /sys/fs/cgroup/*/; do
  mount -o remount,bind,rw "$controller" 2>/dev/null
done
if grep -q "^12" /etc/debian_version; then
  umount /proc/sys/kernel/random/boot_id
fi
exec /lib/systemd/systemd "$@"
"""
INIT = "/usr/local/sbin/fleet-init"
_RECIPE = "1"


def ensure_image(suite: str) -> Path:
    """Return the root directory of the suite, made at the first use; parallel callers wait for the first.

    Raises:
        CommandFailed: debootstrap failed; the message holds the end of its log.
    """
    wanted = "\n".join((_RECIPE, suite, *_PACKAGES, *_MASKED, _CHRONY, _CHRONY_UNIT, _CHRONY_OPTIONS, _INIT))
    images = cache() / "hosts"
    image = images / f"{suite}-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    with locked(images / f"{suite}.lock"):
        if not image.is_dir():
            begun = time.monotonic()
            print(f"making the image of Debian {suite} for hosts, once", file=sys.stderr, flush=True)
            part = images / f"{suite}.part"
            shutil.rmtree(part, ignore_errors=True)
            _bootstrap(suite, part)
            _furnish(part)
            part.rename(image)
            print(f"image of Debian {suite}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return image


def _bootstrap(suite: str, root: Path) -> None:
    mirror = os.environ.get("KQUOTA_DEBIAN_MIRROR")  # default: debootstrap's own
    packages = ",".join(_PACKAGES)
    try:
        unpack = ("debootstrap", "--foreign", "--variant=minbase", f"--include={packages}", suite, root)
        run(*unpack, *([mirror] if mirror else []))
        # Should this machine crash, the image is made again: no need to wait for its disk after each file.
        (root / "etc/dpkg/dpkg.cfg.d/hosts").write_text("force-unsafe-io\n")
        run("chroot", root, "/debootstrap/debootstrap", "--second-stage")
    except CommandFailed as failure:
        log = root / "debootstrap" / "debootstrap.log"
        tail = "\n".join(log.read_text("utf-8").splitlines()[-15:]) if log.exists() else ""
        raise CommandFailed(f"{failure}\n{tail}") from failure


def _furnish(root: Path) -> None:
    """Make it a host that can be logged in to, and take away what a booted one must not share or run."""
    for unit in _MASKED:
        link = root / "etc/systemd/system" / unit
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/null")
    (root / "etc/machine-id").write_text("")
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/chrony/chrony.conf").write_text(_CHRONY)
    (root / "etc/default/chrony").write_text(_CHRONY_OPTIONS)
    drop_ins = root / "etc/systemd/system/chrony.service.d"
    drop_ins.mkdir()
    (drop_ins / "hosts.conf").write_text(_CHRONY_UNIT)
    # No name server would answer for the addresses of those who log in.
    (root / "etc/ssh/sshd_config.d/hosts.conf").write_text("UseDNS no\nPasswordAuthentication no\n")
    run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", USER)
    sudoers = root / "etc/sudoers.d" / USER
    sudoers.write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
    sudoers.chmod(0o440)
    init = root / INIT.lstrip("/")
    init.write_text(_INIT)
    init.chmod(0o755)
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        package.unlink()
