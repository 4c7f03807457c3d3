"""The page of broker properties, and the table of the plug-in's own metrics.

Both are in callback/README.md, whose tables a test of the plug-in keeps as the Java code has them.
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.reference.markdown import head


def broker_page(repository: Path) -> str:
    """Return docs/broker-properties.md."""
    lines = head(
        "Broker properties",
        "Set these in `server.properties`, the live ones also with `kafka-configs.sh`. The plug-in is"
        " loaded with `client.quota.callback.class=org.kquota.KquotaCallback`, the fence with"
        " `authorizer.class.name=org.kquota.KquotaAuthorizer`; the roles write both. [The"
        " plug-in](../callback/README.md) explains each part, [quotas](quotas.md) the uses of"
        " `kquota.quota.*`.",
        origin="the plug-in's definition of its properties",
    )
    return "\n".join([*lines, *table_of(repository, "Broker properties"), ""])


def table_of(repository: Path, heading: str) -> list[str]:
    """Return the lines of the table below a heading of the plug-in's README.

    Raises:
        LookupError: there is no such table.
    """
    text = (repository / "callback/README.md").read_text("utf-8")
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    rows = [line for line in section[1].splitlines() if line.startswith("|")] if section else []
    if not rows:
        raise LookupError(f"callback/README.md has no table below {heading}")
    return rows
