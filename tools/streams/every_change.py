"""What `make test` consists of, cut into streams. CONTRIBUTING.md says what is where."""

from __future__ import annotations

from tools.streams.cut import cut
from tools.streams.stream import REPOSITORY, Files, Plan, Stream

_RECORDS = REPOSITORY / "build/test"
_PYTHON: Files = {
    # On a Kafka, at a limit and at full speed: what these compare are rates and how soon something happens.
    "load": (
        "tests/integration/demo/test_demo.py",
        "tests/integration/demo/test_load.py",
        "tests/integration/demo/test_overshoot.py",
        "tests/integration/fence",
        "tests/integration/quotas",
    ),
    # The fleet of three brokers and agents that many tests share.
    "spine": ("tests/integration/spine", "tests/integration/soak", "tests/integration/tutorial"),
    # Everything else on a real Kafka, or on real disks.
    "kafka": ("tests/integration",),
    # Roles, played on this machine.
    "roles": ("tests/fleet/roles",),
    # Everything else.
    "unit": ("tests",),
}
_MADE = {
    "hosts": ("make", "lint-fleet", "test-scenario"),  # they use the same folder, so not at the same time
    "java": ("make", "test-java"),
    "spark": ("make", "test-spark"),
}
# How many cores each keeps busy, as measured, in an order that keeps two busy to the end. Hosts go before
# others for the processors (testbed/hosts/cgroups.py): beside them runs what compares no rates.
_CORES = {
    "hosts": 0.6,
    "spine": 0.4,
    "roles": 1.0,
    "kafka": 0.3,
    "unit": 0.3,
    "spark": 0.4,
    "java": 0.6,
    "load": 0.7,
}


def every_change() -> Plan:
    """What every change has to pass."""
    first = [
        Stream(name="build", command=("make", "callback", "kafka-jars"), cores=1.0),
        Stream(name="lint", command=("make", "lint-python", "lint-prose", "docs"), cores=1.0),
    ]
    return cut(first, _CORES, made=_MADE, python=_PYTHON, marks="not long", records=_RECORDS)
