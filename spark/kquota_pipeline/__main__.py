"""The command ``kquota-pipeline``, and the program that spark-submit is given."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Run the command line."""
    missing = [name for name in ("pyspark", "typer") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(
            f"kquota-pipeline: {' and '.join(missing)} is not installed here: pip install kquota-pipeline"
        )
    from kquota_pipeline.cli.main import run  # noqa: PLC0415 - what it needs may be missing, see above

    run()


if __name__ == "__main__":
    main()
