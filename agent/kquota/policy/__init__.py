"""Policy: limits, usage, the view of the cluster, and the decision; it imports nothing else of kquota.

Nothing here does I/O or reads a clock; every function that needs the time takes ``now``. The agent, the
command ``kquota decide`` and the pipeline's simulation run this very code.
"""
