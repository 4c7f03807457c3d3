"""A replaced file is whole, its mode is the one asked for, and nothing else is touched."""

import os
import stat
import threading
from pathlib import Path

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
