"""Exit codes of ``kquota``; ``kquota check`` has the monitoring plug-ins' 0/1/2/3 instead."""

OK = 0
FAILED = 1  # it was tried and did not work
USAGE = 2  # the request makes no sense
CONFIGURATION = 78  # EX_CONFIG: systemd does not restart a unit for it
