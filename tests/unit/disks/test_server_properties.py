"""server.properties is read by the broker's rules, and anything else is one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kquota.disks.server_properties import (
    LARGEST_FILE_BYTES,
    BrokerProperties,
    BrokerPropertiesError,
    parse_broker_properties,
    read_broker_properties,
)

PATH = Path("/etc/kafka/server.properties")


def parse(text: str | bytes) -> BrokerProperties:
    return parse_broker_properties(text if isinstance(text, bytes) else text.encode(), PATH)


def dirs(text: str) -> list[str]:
    return [str(path) for path in parse("node.id=1\n" + text).log_dirs]


def test_log_dirs_win_over_log_dir() -> None:
    assert dirs("log.dir=/one\nlog.dirs=/a,/b\n") == ["/a", "/b"]


def test_log_dir_is_the_fallback_and_the_brokers_default_follows() -> None:
    assert dirs("log.dir=/one\n") == ["/one"]
    assert dirs("") == ["/tmp/kafka-logs"]


def test_continuations_escapes_and_blanks_around_commas() -> None:
    text = "log.dirs = /data/1 , \\\n    /data/2 ,/data/with\\ blank,/data/\\u00e4\n! comment\n"
    assert dirs(text) == ["/data/1", "/data/2", "/data/with blank", "/data/ä"]


def test_raw_bytes_are_latin_1_as_for_the_broker() -> None:
    found = parse(b"node.id=1\nlog.dirs=/data/\xc3\xa4\n")
    assert found.log_dirs == (Path("/data/Ã¤"),)


def test_blanks_are_those_of_java() -> None:
    """A raw à is Ã and U+00A0 in Latin-1, a raw Å is Ã and U+0085: Java takes neither for a blank."""
    found = parse("node.id=1\nlog.dirs=/data/là,/data/Å ,\t/data/b\x0b\n".encode())
    expected = ["/data/l\u00c3\u00a0", "/data/\u00c3\u0085", "/data/b"]
    assert [str(path) for path in found.log_dirs] == expected


@pytest.mark.parametrize("text", ["/a,/b", "/a,/b,", "/a,,/b", ",/a , /b", "/a,/b,/a"])
def test_entries_that_are_empty_or_the_same_change_nothing_for_a_broker_that_runs(text: str) -> None:
    """Kafka 4.0.2 and 4.1.2 drop what is empty, and Kafka 4.4.0 what is the same; the others do not start."""
    assert dirs(f"log.dirs={text}\n") == ["/a", "/b"]


def test_of_a_repeated_key_the_last_counts() -> None:
    assert dirs("log.dirs=/a\nlog.dirs=/b\n") == ["/b"]


def test_metadata_log_dir_is_the_first_log_dir_unless_it_is_named() -> None:
    assert parse("node.id=1\nlog.dirs=/a,/b").metadata_log_dir == Path("/a")
    found = parse("node.id=1\nlog.dirs=/a,/b\nmetadata.log.dir=/m")
    assert found.metadata_log_dir == Path("/m")
    assert found.directories == (Path("/a"), Path("/b"), Path("/m"))


def test_a_controller_has_no_log_dirs_only_its_metadata_log_dir() -> None:
    found = parse("node.id=3000\nprocess.roles=controller\nlog.dirs=/a,/b")
    assert found.log_dirs == ()
    assert found.metadata_log_dir == Path("/a")
    assert found.directories == (Path("/a"),)


def test_a_combined_node_keeps_its_log_dirs() -> None:
    found = parse("node.id=1\nprocess.roles=broker, controller\nlog.dirs=/a,/b")
    assert found.process_roles == ("broker", "controller")
    assert found.log_dirs == (Path("/a"), Path("/b"))


def test_broker_id_is_the_older_name_of_node_id() -> None:
    assert parse("broker.id=7\n").node_id == 7
    assert parse("broker.id=7\nnode.id=7\n").node_id == 7


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["node.id", "missing"]),
        ("node.id=1\nbroker.id=2", ["broker.id", "'2'", "node.id (1)"]),
        ("node.id=-1", ["node.id", "'-1'", "2147483647"]),
        ("node.id=2147483648", ["node.id", "'2147483648'", "2147483647"]),
        ("node.id=1_0", ["node.id", "'1_0'"]),
        ("node.id=\\u0661", ["node.id"]),
        ("node.id=", ["node.id", "''"]),
        ("node.id=${env:NODE_ID}", ["node.id", "${env:NODE_ID}", "configuration provider"]),
        ("node.id=1\nlog.dirs=${file:/etc/kafka/dirs:main}", ["log.dirs", "${file:/etc/kafka/dirs:main}"]),
        ("node.id=1\nmetadata.log.dir=/a/${dir}", ["metadata.log.dir", "/a/${dir}"]),
        ("node.id=1\nlog.dirs=", ["log.dirs", "''", "empty"]),
        ("node.id=1\nlog.dirs= , ,", ["log.dirs", "', ,'", "empty"]),
        ("node.id=1\nlog.dirs=/a,data/b", ["log.dirs", "'data/b'", "relative", "absolute"]),
        ("node.id=1\nlog.dirs=/a,/b,/a/", ["log.dirs", "/a twice"]),
        ("node.id=1\nlog.dirs=/a\\u0000b", ["log.dirs", "NUL"]),
        ("node.id=1\nlog.dirs=/a\\ud800", ["log.dirs", "surrogate"]),
        ("node.id=1\nlog.dirs=/a\\u12", ["escape", "four hexadecimal digits"]),
        ("node.id=1\nmetadata.log.dir=", ["metadata.log.dir", "empty"]),
        ("node.id=1\nprocess.roles=zookeeper", ["process.roles", "'zookeeper'", "broker, controller"]),
        ("node.id=1\nprocess.roles=", ["process.roles", "''"]),
        ("node.id=1\nlog.dirs=/a\0", ["NUL", "offset 21"]),
        ("#" * (LARGEST_FILE_BYTES + 1), ["larger than", str(LARGEST_FILE_BYTES)]),
        ("a\\\n" * 1001, ["continued lines"]),
    ],
)
def test_an_error_names_file_key_value_and_rule(text: str, parts: list[str]) -> None:
    with pytest.raises(BrokerPropertiesError) as error:
        parse(text)
    for part in [str(PATH), *parts]:
        assert part in str(error.value)


def test_a_reference_in_a_key_that_is_not_needed_is_no_concern() -> None:
    found = parse("node.id=1\nssl.keystore.password=${file:/etc/kafka/secret:pw}")
    assert found.raw["ssl.keystore.password"] == "${file:/etc/kafka/secret:pw}"


def test_secrets_do_not_show_in_the_representation() -> None:
    assert "hunter2" not in repr(parse("node.id=1\nssl.keystore.password=hunter2"))


def test_a_missing_file_and_a_directory_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(BrokerPropertiesError, match=r"absent: can't be read: No such file"):
        read_broker_properties(tmp_path / "absent")
    with pytest.raises(BrokerPropertiesError, match=r"can't be read: Is a directory"):
        read_broker_properties(tmp_path)
    with pytest.raises(BrokerPropertiesError, match=r"can't be read"):
        read_broker_properties(tmp_path / "nul\0")


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=5\nlog.dirs=/a\n")
    assert read_broker_properties(file).node_id == 5
    assert read_broker_properties(file).path == file


_KEYS = [b"node.id", b"broker.id", b"log.dirs", b"log.dir", b"metadata.log.dir", b"process.roles"]
_SIGNS = [b"=", b":", b"\n", b"\r", b"\\", b"\\\n", b"\\u00", b"\\ud800", b",", b" ", b"#", b"\0", b"\xff"]
_VALUES = [b"/a", b"/", b"1", b"${", b"}", b"controller", b"broker"]
_SNIPPETS = st.sampled_from([*_KEYS, *_SIGNS, *_VALUES])


@given(st.binary(max_size=300) | st.lists(_SNIPPETS, max_size=40).map(b"".join))
@example(b"node.id=1")
def test_any_bytes_give_a_value_or_the_one_error(content: bytes) -> None:
    try:
        found = parse(content)
    except BrokerPropertiesError:
        return
    assert 0 <= found.node_id < 2**31
    assert all(path.is_absolute() and b"\0" not in bytes(path) for path in found.directories)
    assert len(set(found.directories)) == len(found.directories) >= 1


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    file, begins = tmp_path / "server.properties", b"node.id=1\nlog.dirs=/a\n#"
    file.write_bytes(begins.ljust(LARGEST_FILE_BYTES, b"x"))
    assert read_broker_properties(file).node_id == 1
    file.write_bytes(begins.ljust(LARGEST_FILE_BYTES + 1, b"x"))
    with pytest.raises(BrokerPropertiesError, match="is larger than"):
        read_broker_properties(file)


def test_a_path_that_can_t_be_one_is_named_with_the_reason() -> None:
    with pytest.raises(BrokerPropertiesError, match="can't be read: embedded null byte"):
        read_broker_properties(Path("\0"))


@pytest.mark.parametrize(("length", "shown"), [(300, f"{'x' * 300!r}:"), (301, f"{'x' * 300!r}…:")])
def test_of_a_long_value_the_beginning_is_shown(length: int, shown: str) -> None:
    with pytest.raises(BrokerPropertiesError) as error:
        parse_broker_properties(f"node.id={'x' * length}\nlog.dirs=/a\n".encode(), Path("p"))
    assert f"node.id = {shown}" in str(error.value)


def test_a_node_id_that_is_given_counts_also_where_the_file_has_none(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/data/kafka\n", "utf-8")
    with pytest.raises(BrokerPropertiesError, match=r"node\.id is missing .* set broker\.node_id"):
        read_broker_properties(file)
    assert read_broker_properties(file, 7).node_id == 7
    file.write_text("node.id=1\n", "utf-8")
    assert read_broker_properties(file, 0).node_id == 0
