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
                    "kquota.cli.status:status",
                    "All brokers, the decision, what plug-ins apply",
                    "kquota status --watch",
                ),
                "explain": Command(
                    "kquota.cli.explain:explain",
                    "Why producers are slowed, what would end it",
                    "kquota explain --topic orders",
                ),
                "top": Command(
                    "kquota.cli.top:top", "The clients that fill this broker's disks", "kquota top --count 5"
                ),
                "volumes": Command(
                    "kquota.cli.local:volumes",
                    "What this broker's log dirs resolve to",
                    "kquota volumes --topics",
                ),
                "decision": Command(
                    "kquota.cli.local:decision",
                    "This broker's decision file and its lease",
                    "kquota decision --json",
                ),
                "check": Command(
                    "kquota.cli.check:check", "This broker, for a monitoring system", "kquota check"
                ),
            },
        ),
        Purpose(
            "Decide",
            {
                "relief": Command(
                    "kquota.cli.relief:relief",
                    "Rank and plan what makes room on a full volume",
                    "kquota relief --plan plan.json",
                ),
                "decide": Command(
                    "kquota.cli.decide:decide",
                    "Try a situation or other limits offline",
                    "kquota decide --records log.jsonl --brokers 1,2,3 --now 2026-11-20T10:00:00Z",
                ),
            },
        ),
        Purpose(
            "Act",
            {
                "hold": Command(
                    "kquota.cli.orders:hold_app",
                    "Hold the cluster at PAUSE or OPEN",
                    'kquota hold pause --for 30m --reason "switch replacement"',
                    is_group=True,
                ),
                "quarantine": Command(
                    "kquota.cli.orders:quarantine",
                    "Take a broker's vote on others",
                    'kquota quarantine 3 --for 2h --reason "its figures are wrong"',
                ),
                "maintenance": Command(
                    "kquota.cli.orders:maintenance",
                    "Announce a planned stop of an agent",
                    "kquota maintenance --for 15m",
                ),
                "decommission": Command(
                    "kquota.cli.orders:decommission",
                    "Forget a broker that is gone for good",
                    'kquota decommission 3 --reason "replaced by broker 7"',
                ),
                "uncordon": Command(
                    "kquota.cli.uncordon:uncordon", "Let Kafka place partitions here again", "kquota uncordon"
                ),
                "topics": Command(
                    "kquota.cli.topics:topics_app",
                    "Bound the bytes in of topics",
                    "kquota topics set orders 40M",
                    is_group=True,
                ),
            },
        ),
        Purpose(
            "Set up",
            {
                "config": Command(
                    "kquota.cli.local:config_app",
                    "Write, check or show agent.yml",
                    "kquota config init",
                    is_group=True,
                ),
                "access": Command(
                    "kquota.cli.access:access",
                    "Let the agent's user read what it needs",
                    "kquota access /etc/kafka/server.properties",
                ),
                "run": Command(
                    "kquota.cli.run:run",
                    "Run the agent, as its systemd unit does",
                    "kquota run --config /etc/kquota/agent.yml",
                ),
            },
        ),
    ),
)
application = COMMANDS.application
main = COMMANDS.run
