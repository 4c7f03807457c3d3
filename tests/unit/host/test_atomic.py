"""A replaced file is whole, its mode is the one asked for, and nothing else is touched."""

import os
import stat
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from kquota.host.atomic import remove_leftovers, replace_file


def test_a_reader_beside_the_writer_never_sees_half(tmp_path: Path) -> None:
    path = tmp_path / "decision.json"
    contents = [bytes([letter]) * 70_000 for letter in b"abc"]
    replace_file(path, contents[0])
    done = threading.Event()
    halves: list[bytes] = []
    looks = 0

    def look() -> None:
        nonlocal looks
        while not done.is_set():
            data = path.read_bytes()
            looks += 1
            if data not in contents:
                halves.append(data)

    reader = threading.Thread(target=look)
    reader.start()
    try:
        for number in range(300):
            replace_file(path, contents[number % 3])
    finally:
        done.set()
        reader.join()
    assert looks > 0
    assert halves == []


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_the_mode_is_the_one_asked_for_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        replace_file(tmp_path / "open", b"x", 0o644)
        replace_file(tmp_path / "closed", b"x", 0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "closed").stat().st_mode) == 0o600


def test_a_missing_directory_is_an_error_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "decision.json"
    with pytest.raises(FileNotFoundError) as error:
        replace_file(path, b"x")
    assert error.value.filename == str(path)


def test_a_symbolic_link_is_replaced_and_its_target_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    link = tmp_path / "decision.json"
    link.symlink_to(target)
    replace_file(link, b"new")
    assert not link.is_symlink()
    assert target.read_bytes() == b"precious"


def test_leftovers_of_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "decision.json"
    mine = tmp_path / ".decision.json.77.kquota-tmp"
    other = tmp_path / ".other.json.77.kquota-tmp"
    for file in (mine, other, path):
        file.write_bytes(b"x")
    assert remove_leftovers(path) == [mine]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [other.name, path.name]


@pytest.mark.parametrize(
    ("directory", "file", "given"),
    [
        ((7, 70), (8, 80), [(8, 80)]),
        ((7, 70), (0, 0), [(7, 70)]),
        ((7, 70), None, [(7, 70)]),
        ((0, 0), (8, 80), [(8, 80)]),
        ((0, 0), (0, 0), []),
        ((0, 0), (0, 5), []),
        ((1, 1), (0, 0), [(1, 1)]),
    ],
)
def test_a_file_that_root_replaces_stays_with_its_owner_or_the_directorys(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    directory: tuple[int, int],
    file: tuple[int, int] | None,
    given: list[tuple[int, int]],
) -> None:
    """Users and groups are made up: a test that is not root owns everything itself."""
    path, chowned = tmp_path / "state.json", []

    def owner_of(name: str, *, dir_fd: int, follow_symlinks: bool) -> object:
        assert (name, follow_symlinks) == (path.name, False)
        assert Path(f"/proc/self/fd/{dir_fd}").readlink() == tmp_path
        if file is None:
            raise FileNotFoundError(name)
        return SimpleNamespace(st_uid=file[0], st_gid=file[1])

    def owner_of_directory(handle: int) -> object:
        assert Path(f"/proc/self/fd/{handle}").readlink() == tmp_path
        return SimpleNamespace(st_uid=directory[0], st_gid=directory[1])

    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: 0)
        patched.setattr(os, "stat", owner_of)
        patched.setattr(os, "fstat", owner_of_directory)
        patched.setattr(os, "fchown", lambda _, *owner: chowned.append(owner))
        replace_file(path, b"x", keep_owner=True)
    assert chowned == given
    assert path.read_bytes() == b"x"


def test_a_file_is_the_callers_own_unless_asked_for_or_without_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_owner(*_: object, **__: object) -> None:
        raise AssertionError("nothing is asked or changed")

    with monkeypatch.context() as patched:
        for name in ("stat", "fstat", "fchown"):
            patched.setattr(os, name, no_owner)
        patched.setattr(os, "geteuid", lambda: 0)
        replace_file(tmp_path / "a", b"x")
        patched.setattr(os, "geteuid", lambda: 1)
        replace_file(tmp_path / "b", b"x", keep_owner=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_what_is_in_the_place_of_roots_temp_file_is_not_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, target = tmp_path / "state.json", tmp_path / "target"
    target.write_bytes(b"precious")
    os.link(target, tmp_path / f".state.json.{os.getpid()}.kquota-tmp")
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: 0)
        patched.setattr(os, "fchown", lambda *_: None)
        patched.setattr(os, "fstat", lambda _: SimpleNamespace(st_uid=7, st_gid=70))
        replace_file(path, b"new", keep_owner=True)
    assert target.read_bytes() == b"precious"
    assert path.read_bytes() == b"new"
