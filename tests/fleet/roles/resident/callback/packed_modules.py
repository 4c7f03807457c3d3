"""Ansible packs a module with its libraries once for all plays of the tests, not in each play."""

import os
from pathlib import Path

from ansible import constants
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    """Loaded before the first task; ansible-core looks in this folder for a module before it packs it."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "packed_modules"

    def __init__(self) -> None:
        super().__init__()
        (Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache").symlink_to(os.environ["KQUOTA_TEST_PACKED"])
