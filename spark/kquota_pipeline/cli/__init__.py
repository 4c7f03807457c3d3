"""The command line: ``kquota-pipeline``."""
