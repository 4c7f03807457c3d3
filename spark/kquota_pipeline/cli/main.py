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
                "ingest": Command(f"{_CLI}.ingest:ingest_command", "Append the history topic's new records"),
                "maintain": Command(
                    f"{_CLI}.maintain:maintain_command", "Derive closed days, compact, drop old days"
                ),
                "reparse": Command(f"{_CLI}.reparse:reparse_command", "Make the rows of days again"),
                "tables": Command(f"{_CLI}.tables:tables", "All tables, and what each column means"),
            },
            ["kquota-pipeline maintain --tables file:/srv/tables"],
        ),
        Purpose(
            "Look back",
            {
                "report": Command(f"{_CLI}.analysis:report", "One page with everything"),
                "skew": Command(f"{_CLI}.analysis:skew", "How unevenly brokers and volumes are filled"),
                "accounting": Command(
                    f"{_CLI}.analysis:accounting", "Bytes and throttle time by client or topic"
                ),
                "chargeback": Command(
                    f"{_CLI}.chargeback:chargeback", "Who held, wrote and read how many bytes"
                ),
            },
            ["kquota-pipeline report --tables file:/srv/tables"],
        ),
        Purpose(
            "Look ahead",
            {
                "forecast": Command(
                    f"{_CLI}.analysis:forecast", "When volumes reach their limits, how likely"
                ),
                "recommend": Command(
                    f"{_CLI}.recommend:recommend", "Limits that keep every disk from filling"
                ),
                "backtest": Command(f"{_CLI}.backtest:backtest", "The history under other limits"),
                "whatif": Command(f"{_CLI}.whatif:whatif", "Another load, retention or set of brokers"),
            },
            ["kquota-pipeline forecast --tables file:/srv/tables"],
        ),
        Purpose(
            "Set up",
            {
                "demo": Command(f"{_CLI}.demo:demo", "All of it on a month of a made history"),
                "jars": Command(f"{_CLI}.deployment:jars", "Fetch the jars that Spark lacks"),
                "archive": Command(f"{_CLI}.deployment:archive", "The files for spark-submit on a cluster"),
            },
            ["kquota-pipeline demo"],
        ),
    ),
)
application = COMMANDS.application
run = COMMANDS.run
