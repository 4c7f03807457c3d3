"""The commands of ``kquota-pipeline``; each loads only itself."""

from __future__ import annotations

from kquota.lazy_commands import LazyCommands

COMMANDS = LazyCommands(
    program="kquota-pipeline",
    help="Work on the history of a kquota cluster, on Spark.",
    commands={
        "ingest": "kquota_pipeline.cli.ingest:ingest_command",
        "reparse": "kquota_pipeline.cli.reparse:reparse_command",
        "maintain": "kquota_pipeline.cli.maintain:maintain_command",
        **{
            name: f"kquota_pipeline.cli.analysis:{name}"
            for name in ("forecast", "skew", "accounting", "report")
        },
        "chargeback": "kquota_pipeline.cli.chargeback:chargeback",
        "tables": "kquota_pipeline.cli.tables:tables",
        "backtest": "kquota_pipeline.cli.backtest:backtest",
        "recommend": "kquota_pipeline.cli.recommend:recommend",
        "whatif": "kquota_pipeline.cli.whatif:whatif",
        "demo": "kquota_pipeline.cli.demo:demo",
        "jars": "kquota_pipeline.cli.deployment:jars",
        "archive": "kquota_pipeline.cli.deployment:archive",
    },
)
application = COMMANDS.application
run = COMMANDS.run
