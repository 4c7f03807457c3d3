"""What `make test-long` consists of, cut into streams. CONTRIBUTING.md says what is where."""

from __future__ import annotations

from tools.streams.cut import cut
from tools.streams.stream import REPOSITORY, Files, Plan, Stream

_RECORDS = REPOSITORY / "build/test-long"
_PYTHON: Files = {
    # The demonstration on hosts, whole and interrupted.
    "demo": ("tests/fleet/test_demo.py",),
    # A rollout on one host, and one on three, and what can happen to their disks, clocks and networks.
    "brokers": ("tests/fleet/test_one_broker.py", "tests/fleet/test_three_brokers.py"),
    # Everything else on hosts: packages, passwords, several brokers, and the hosts themselves.
    "hosts": ("tests/fleet",),
    # What compares rates, and how soon something happens.
    "load": ("tests/integration/demo", "tests/integration/fence", "tests/integration/quotas"),
    # Everything else: fleets on loopback, the checked model, what is in the packages.
    "rest": ("tests",),
}
_MADE = {
    "java": ("make", "test-java-long"),
    "java-4.2": ("make", "test-java-4.2"),
    "java-4.3": ("make", "test-java-4.3"),
    "scenarios": ("make", "scenarios"),
    "spark": ("make", "test-spark-long"),
}
# As in every_change.py.
_CORES = {
    "load": 1.3,
    "scenarios": 0.7,
    "brokers": 0.7,
    "hosts": 0.7,
    "demo": 0.9,
    "rest": 0.7,
    "java": 1.1,
    "java-4.3": 1.2,
    "java-4.2": 1.2,
    "spark": 1.2,
}


def campaigns() -> Plan:
    """What takes minutes each, and need not be run for every change."""
    first = [Stream(name="build", command=("make", "built-for-campaigns"), cores=1.0)]
    return cut(first, _CORES, made=_MADE, python=_PYTHON, marks="long", records=_RECORDS)
