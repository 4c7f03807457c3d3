"""Where the broker plug-in's jar is."""

from __future__ import annotations

import os
from pathlib import Path

import kquota

_SOURCE_TREE = Path(__file__).resolve().parents[2]
_INSTALLED = Path("/usr/share/java")


class CallbackJarMissing(Exception):
    """The plug-in's jar is nowhere; the message has the remedy."""


def find_callback_jar() -> Path:
    """The jar: LOOPBACK_KAFKA_CALLBACK_JAR, the one built in the source tree, or the installed package's.

    Raises:
        CallbackJarMissing: there is none.
    """
    name = f"kquota-callback-{kquota.__version__}.jar"
    if configured := os.environ.get("LOOPBACK_KAFKA_CALLBACK_JAR"):
        if Path(configured).is_file():
            return Path(configured)
        raise CallbackJarMissing(f"LOOPBACK_KAFKA_CALLBACK_JAR={configured}: there is no such file")
    candidates = [_SOURCE_TREE / "callback" / "target" / name, _INSTALLED / name]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise CallbackJarMissing(
        f"{name} is neither in {candidates[0].parent} nor in {_INSTALLED}: run `make callback`, "
        "or name it in LOOPBACK_KAFKA_CALLBACK_JAR"
    )
