"""Locks of files: how the file is made, and how their holder is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kquota.host.file_lock import FileLock, Holder


def test_a_free_lock_is_taken_and_its_file_stays_empty_and_private(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with FileLock(path) as lock:
        assert lock.take() is None
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"", 0o600)


def test_a_file_that_is_there_is_used_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.write_text("kept")
    path.chmod(0o640)
    with FileLock(path) as lock:
        assert lock.take() is None
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("kept", 0o640)


def test_root_leaves_the_file_to_the_directory_s_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = list[tuple[int, int]]()
    home = tmp_path.stat()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", lambda _file, user, group: given.append((user, group)))
    for _ in range(2):
        FileLock(tmp_path / "a.lock").close()
    assert given == [(home.st_uid, home.st_gid)]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "a.lock").symlink_to(target)
    with pytest.raises(OSError, match=r"a\.lock"):
        FileLock(tmp_path / "a.lock")


def test_a_holder_is_named_as_far_as_it_can_be_seen() -> None:
    assert str(Holder(7, "kquota relief")) == "process 7 (kquota relief)"
    assert str(Holder(7, "")) == "process 7"
    assert str(Holder(0, "")) == "another process"
