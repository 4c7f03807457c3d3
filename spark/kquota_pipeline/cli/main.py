"""The commands of ``kquota-pipeline``; each loads only itself."""

from __future__ import annotations

from kquota.lazy_commands import Command, LazyCommands, Purpose

_CLI = "kquota_pipeline.cli"
COMMANDS = LazyCommands(
    program="kquota-pipeline",
    help="Work on the history of a kquota cluster, on Spark.",
    purposes=(
        Purpose(
            "Fill the tables",
            {
                "ingest": Command(
                    f"{_CLI}.ingest:ingest_command",
                    "Append the history topic's new records",
                    "kquota-pipeline ingest --bootstrap-servers kafka:9092"
                    " --tables file:/srv/tables --checkpoint file:/srv/checkpoint",
                ),
                "maintain": Command(
                    f"{_CLI}.maintain:maintain_command",
                    "Derive closed days, compact, drop old days",
                    "kquota-pipeline maintain --tables file:/srv/tables",
                ),
                "reparse": Command(
                    f"{_CLI}.reparse:reparse_command",
                    "Make the rows of days again",
                    "kquota-pipeline reparse --from 30d"
                    " --tables file:/srv/tables --checkpoint file:/srv/checkpoint",
                ),
                "tables": Command(
                    f"{_CLI}.tables:tables",
                    "All tables, and what each column means",
                    "kquota-pipeline tables",
                ),
            },
        ),
        Purpose(
            "Look back",
            {
                "report": Command(
                    f"{_CLI}.analysis:report",
                    "One page with everything",
                    "kquota-pipeline report --tables file:/srv/tables --to report.html",
                ),
                "skew": Command(
                    f"{_CLI}.analysis:skew",
                    "How unevenly brokers and volumes are filled",
                    "kquota-pipeline skew --tables file:/srv/tables --moves",
                ),
                "accounting": Command(
                    f"{_CLI}.analysis:accounting",
                    "Bytes and throttle time by client or topic",
                    "kquota-pipeline accounting --tables file:/srv/tables --groups groups.yml",
                ),
                "chargeback": Command(
                    f"{_CLI}.chargeback:chargeback",
                    "Who held, wrote and read how many bytes",
                    "kquota-pipeline chargeback --tables file:/srv/tables --csv october.csv",
                ),
            },
        ),
        Purpose(
            "Look ahead",
            {
                "forecast": Command(
                    f"{_CLI}.analysis:forecast",
                    "When volumes reach their limits, how likely",
                    "kquota-pipeline forecast --tables file:/srv/tables",
                ),
                "recommend": Command(
                    f"{_CLI}.recommend:recommend",
                    "Limits that keep every disk from filling",
                    "kquota-pipeline recommend --tables file:/srv/tables --to recommended-limits",
                ),
                "backtest": Command(
                    f"{_CLI}.backtest:backtest",
                    "The history under other limits",
                    "kquota-pipeline backtest --tables file:/srv/tables --policies policies.yml",
                ),
                "whatif": Command(
                    f"{_CLI}.whatif:whatif",
                    "Another load, retention or set of brokers",
                    "kquota-pipeline whatif --tables file:/srv/tables --without 3",
                ),
            },
        ),
        Purpose(
            "Set up",
            {
                "demo": Command(
                    f"{_CLI}.demo:demo", "All of it on a month of a made history", "kquota-pipeline demo"
                ),
                "jars": Command(
                    f"{_CLI}.deployment:jars", "Fetch the jars that Spark lacks", "kquota-pipeline jars"
                ),
                "archive": Command(
                    f"{_CLI}.deployment:archive",
                    "The files for spark-submit on a cluster",
                    "kquota-pipeline archive --to .",
                ),
            },
        ),
    ),
)
application = COMMANDS.application
run = COMMANDS.run
