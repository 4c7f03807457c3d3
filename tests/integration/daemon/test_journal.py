"""Entries as journald gets them, and the catalog as journalctl reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kquota.journal.journal import MessageId

CATALOG = Path(__file__).parents[3] / "packaging" / "kquota.catalog"


def test_under_systemd_fields_and_ids_reach_journald() -> None:
    child = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            sys.executable,
            str(Path(__file__).with_name("journal_child.py")),
        ],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 0, child.stderr.decode()
    transition, library = (
        entry.decode(errors="replace").splitlines()  # fields of several lines have a binary length
        for entry in child.stdout.split(b"\n===\n")[:-1]
    )
    assert "MESSAGE=PAUSE: the password is [redacted]" in transition
    assert f"MESSAGE_ID={MessageId.STATE_CHANGED}" in transition
    assert "PRIORITY=4" in transition
    assert "SYSLOG_IDENTIFIER=kquota" in transition
    assert "KQUOTA_BROKER_ID=3" in transition
    assert "KQUOTA_STATE=PAUSE" in transition
    assert "KQUOTA_FACTOR=0.000000" in transition
    assert "KQUOTA_REASON=a volume is full" in transition
    assert "LOGGER=some.library" in library
    assert b"hunter2" not in child.stdout


def test_journalctl_compiles_the_catalog(tmp_path: Path) -> None:
    directory = tmp_path / "usr" / "lib" / "systemd" / "catalog"
    directory.mkdir(parents=True)
    (tmp_path / "var" / "lib" / "systemd" / "catalog").mkdir(parents=True)
    (directory / "kquota.catalog").write_bytes(CATALOG.read_bytes())
    update = subprocess.run(
        ["journalctl", f"--root={tmp_path}", "--update-catalog"], capture_output=True, text=True, check=False
    )
    assert (update.returncode, update.stderr) == (0, "")
    listed = subprocess.run(
        ["journalctl", f"--root={tmp_path}", "--list-catalog"], capture_output=True, text=True, check=True
    ).stdout
    for message_id in MessageId:
        assert message_id in listed
