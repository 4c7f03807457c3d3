"""``python -m kquota`` is the command ``kquota``."""

from kquota.cli.main import main

main()
