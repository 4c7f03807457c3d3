"""Throw-away hosts with a systemd of their own, for tests of packages, units, roles and playbooks.

    with Fleet.create("mine", [HostSpec(name="broker-1", suite="trixie")]) as fleet:
        fleet["broker-1"].run("systemctl", "is-system-running")

A host is a Debian root directory under an overlay, booted by systemd-nspawn in a network namespace of its
own, on a bridge that leads nowhere. Its volumes are loop-mounted from outside, so that disks can be taken
away and broken under its feet. Everything is removed when its owner ends, see `keeper`.
"""
