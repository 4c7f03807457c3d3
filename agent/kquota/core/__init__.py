"""The functional core: limits, usage records, cluster view, policy, decision.

Nothing here does I/O, reads a clock or imports anything but the standard library and itself; every
function that needs the time takes ``now``. The agent, the command line (``kquota decide``) and the
back-test of the pipeline run this very code.
"""
