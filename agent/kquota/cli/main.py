"""Entry point of the command ``kquota``."""

from __future__ import annotations

from kquota.lazy_commands import LazyCommands

COMMANDS = LazyCommands(
    program="kquota",
    help="Keep the disks of an Apache Kafka cluster from running full.",
    commands={
        "run": "kquota.cli.run:run",
        "status": "kquota.cli.status:status",
        "explain": "kquota.cli.explain:explain",
        "check": "kquota.cli.check:check",
        "top": "kquota.cli.top:top",
        "decision": "kquota.cli.local:decision",
        "volumes": "kquota.cli.local:volumes",
        "relief": "kquota.cli.relief:relief",
        "decide": "kquota.cli.decide:decide",
        "access": "kquota.cli.access:access",
        "uncordon": "kquota.cli.uncordon:uncordon",
        "quarantine": "kquota.cli.orders:quarantine",
        "maintenance": "kquota.cli.orders:maintenance",
        "decommission": "kquota.cli.orders:decommission",
    },
    groups={
        "config": "kquota.cli.local:config_app",
        "hold": "kquota.cli.orders:hold_app",
        "topics": "kquota.cli.topics:topics_app",
    },
)
application = COMMANDS.application
main = COMMANDS.run
