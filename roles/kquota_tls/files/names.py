"""Keep the node ids that agents' certificates name: `names.py FILE HOST ID [new] [change] [check]`.

FILE is on the control host and has a line for each host of the inventory: its broker's id and its name. A
host cannot choose what it is called. The id that it has must be the one in FILE, and no other host's. `new`
adds a host that FILE does not have, `change` gives the host another id, even that of another host, `check`
writes nothing. Prints what it has changed; exits with status 3 and a sentence if the host gets no
certificate. Only the standard library of Python 3.10: it runs in the Python of the control host's Ansible.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

HEADER = """\
# The node ids that the certificates of kquota's agents name, by host of the inventory. The role kquota_tls
# writes this file: it adds hosts, and changes the id of one only with kquota_tls_change_node_id_of.
"""
_LINE = re.compile(r"(0|[1-9][0-9]{0,9}) (\S.*)")


class Refused(Exception):
    """A host that gets no certificate; the message is the sentence for the operator."""


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Have the file to ourselves, against another play that signs at the same time."""
    while True:
        with file.open("a") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)
            # Not one that another play has replaced meanwhile.
            if file.exists() and os.path.samestat(os.fstat(opened.fileno()), file.stat()):
                yield
                return


def read(file: Path) -> dict[str, str]:
    """Return the ids by host.

    Raises:
        Refused: a line is not one of an id and a host, or two are of the same.
    """
    ids: dict[str, str] = {}
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None or match[2] in ids or match[1] in ids.values():
            raise Refused(
                f"line {number} of {file} on the control host, '{text}', must be a node id and the name of a"
                " host, each of which no other line has: correct it"
            )
        ids[match[2]] = match[1]
    return ids


def write(file: Path, ids: dict[str, str]) -> None:
    """Replace the file in one step."""
    lines = (f"{node_id} {host}\n" for host, node_id in sorted(ids.items(), key=lambda item: int(item[1])))
    new = file.with_name(f"{file.name}.new")
    new.write_text(HEADER + "".join(lines), "utf-8")
    new.replace(file)


def changed(ids: dict[str, str], host: str, node_id: str, words: set[str], file: Path) -> dict[str, str]:
    """Return the ids with that of the host.

    Raises:
        Refused: the host has another id, or the id is another host's, and no operator wants that.
    """
    if ids.get(host) == node_id:
        return ids
    if "change" in words:
        return {other: known for other, known in ids.items() if known != node_id} | {host: node_id}
    owner = next((other for other, known in ids.items() if known == node_id), None)
    if host not in ids and owner is None and "new" in words:
        return ids | {host: node_id}
    pinned = f"has {ids[host]} for it" if host in ids else "has none for it"
    taken = f", and {node_id} is that of {owner}" if owner else ""
    todo = (
        f"if the broker of {host} is to have this id, run playbooks/rollout.yml with"
        f" -e kquota_tls_change_node_id_of={host}"
        if host in ids or owner
        else "playbooks/rollout.yml (--tags kquota_tls) adds it"
    )
    raise Refused(
        f"{host} has the node id {node_id}, but {file} on the control host {pinned}{taken}."
        f" Check node.id on {host}; {todo}"
    )


def main() -> int:
    """Check the id of a host, and write it down."""
    file, host, node_id = Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    words = set(sys.argv[4:])
    try:
        with nullcontext() if "check" in words else locked(file):
            known = read(file)
            wanted = changed(known, host, node_id, words, file)
            if wanted != known and "check" not in words:
                write(file, wanted)
                print(f"{node_id} {host}")
    except (OSError, ValueError, Refused) as problem:
        print(
            problem
            if isinstance(problem, Refused)
            else f"{file} on the control host can't be used: {problem}"
        )
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
