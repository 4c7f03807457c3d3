"""One relief plan at a time: ``--apply`` and ``--undo`` hold a lock of this host's broker."""

from __future__ import annotations

from kquota.cli.configuration import broker_id_of
from kquota.cli.output import fail
from kquota.host.file_lock import FileLock
from kquota.settings import Settings

_NAME = "relief.lock"


def take_relief_lock(settings: Settings) -> FileLock:
    """Take the lock until this process ends, or end with who has it.

    A plan is of one broker, and can be used on its host alone. So the broker's lock is the plan's, too, and
    it is in the agent's state directory, which stays while the plan's file is replaced.
    """
    path = settings.state_dir / _NAME
    try:
        lock = FileLock(path)
        holder = lock.take()
    except OSError as error:
        fail(f"{path}, which keeps two plans from being used at once, can't be locked: {error.strerror}")
    if holder is not None:
        fail(
            f"{holder} is using a plan of broker {broker_id_of(settings)}: wait until it ends, or end it,"
            " which leaves its plan as far as it has come"
        )
    return lock
