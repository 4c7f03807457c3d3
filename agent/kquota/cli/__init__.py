"""The command ``kquota``."""
