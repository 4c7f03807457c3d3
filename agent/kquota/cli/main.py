"""Entry point of the command ``kquota``."""

from __future__ import annotations

from kquota.lazy_commands import Command, LazyCommands, Purpose

COMMANDS = LazyCommands(
    program="kquota",
    help="Keep the disks of an Apache Kafka cluster from running full.",
    purposes=(
        Purpose(
            "See",
            {
                "status": Command(
                    "kquota.cli.status:status", "All brokers, the decision, what plug-ins apply"
                ),
                "explain": Command(
                    "kquota.cli.explain:explain", "Why producers are slowed, what would end it"
                ),
                "top": Command("kquota.cli.top:top", "The clients that fill this broker's disks"),
                "volumes": Command("kquota.cli.local:volumes", "What this broker's log dirs resolve to"),
                "decision": Command("kquota.cli.local:decision", "This broker's decision file and its lease"),
                "check": Command("kquota.cli.check:check", "This broker, for a monitoring system"),
            },
            ["kquota status --watch"],
        ),
        Purpose(
            "Decide",
            {
                "relief": Command(
                    "kquota.cli.relief:relief", "Rank and plan what makes room on a full volume"
                ),
                "decide": Command("kquota.cli.decide:decide", "Try a situation or other limits offline"),
            },
            ["kquota relief"],
        ),
        Purpose(
            "Act",
            {
                "hold": Command(
                    "kquota.cli.orders:hold_app", "Hold the cluster at PAUSE or OPEN", is_group=True
                ),
                "quarantine": Command("kquota.cli.orders:quarantine", "Take a broker's vote on others"),
                "maintenance": Command(
                    "kquota.cli.orders:maintenance", "Announce a planned stop of an agent"
                ),
                "decommission": Command(
                    "kquota.cli.orders:decommission", "Forget a broker that is gone for good"
                ),
                "uncordon": Command("kquota.cli.uncordon:uncordon", "Let Kafka place partitions here again"),
                "topics": Command(
                    "kquota.cli.topics:topics_app", "Bound the bytes in of topics", is_group=True
                ),
            },
            ['kquota hold pause --for 30m --reason "switch replacement"'],
        ),
        Purpose(
            "Set up",
            {
                "config": Command(
                    "kquota.cli.local:config_app", "Write, check or show agent.yml", is_group=True
                ),
                "access": Command("kquota.cli.access:access", "Let the agent's user read what it needs"),
                "run": Command("kquota.cli.run:run", "Run the agent, as its systemd unit does"),
            },
            ["kquota config init"],
        ),
    ),
)
application = COMMANDS.application
main = COMMANDS.run
