"""The file, the environment above it, and everything wrong with both at once."""

from pathlib import Path

import pytest

from kquota.settings import RESERVED_VARIABLES, SettingsError, load
from tests.unit.settings.configuration import MINIMAL, PATH, loaded, problems, problems_of


def test_the_environment_wins_key_by_key() -> None:
    more = "limits: {hard: {type: MinFreeBytes, level: 1}}\ntopics: {usage: {name: a, partitions: 3}}\n"
    environ = {
        "KQUOTA_TOPICS__USAGE__NAME": "b",
        "KQUOTA_MODE": "enforce",
        "KQUOTA_BROKER__NODE_ID": "7",
        "KQUOTA_TOPICS__CREATE": "false",
        "KQUOTA_LIMITS__VOLUMES": '{"/data/1": {"hard": {"type": "MinFreeBytes", "level": 2}}}',
        "PATH": "/bin",
    }
    settings = loaded(more, environ)
    assert settings.topics.usage.name == "b"
    assert settings.topics.usage.partitions == 3
    assert settings.topics.create is False
    assert settings.mode == "enforce"
    assert settings.broker.node_id == 7
    assert settings.limits.hard.level == 1
    assert settings.limits.pair("/data/1").hard.level == 2


def test_null_in_the_environment_takes_a_value_away() -> None:
    assert (
        loaded("topics: {usage: {partitions: 3}}", {"KQUOTA_TOPICS__USAGE__PARTITIONS": "null"}) == loaded()
    )


def test_all_problems_of_all_layers_at_once() -> None:
    text = """\
broker:
  server_propertys: /etc/kafka/server.properties
kafka:
  group.id: mine
limits:
  hard: {type: Free, level: -1}
mode: of
"""
    environ = {
        "KQUOTA_STALENESS": "60",
        "KQUOTA_LOG__LEVEL": "loud",
        "KQUOTA_KAFKA_SECRETS__SASL_PASSWORD": "/nowhere",
    }
    found = problems(text, environ)
    assert {problem.key for problem in found} == {
        "broker.server_properties",
        "broker.server_propertys",
        "kafka.group.id",
        "kafka.bootstrap.servers",
        "kafka_secrets.sasl.password",
        "limits.hard.type",
        "limits.hard.level",
        "mode",
        "log.level",
        "",
    }
    sentences = "\n".join(str(problem) for problem in found)
    assert "did you mean server_properties?" in sentences
    assert "environment variable KQUOTA_STALENESS: is for no key" in sentences
    assert "/etc/kquota/agent.yml line 7: mode is 'of'; allowed: observe or enforce" in sentences
    assert "pydantic" not in sentences


def test_an_unknown_key_is_refused_wherever_it_is() -> None:
    for more, key in (
        ("intervall_seconds: 5", "intervall_seconds"),
        ("_env_file: /etc/passwd", "_env_file"),
        ("_secrets: {sasl.password: x}", "_secrets"),
        ("topics: {usage: {nam: x}}", "topics.usage.nam"),
        ("limits: {volumes: {/data: {Hard: 1}}}", "limits.volumes./data.Hard"),
        ("limits: {hard: {type: MinFreeBytes, level: 5, unit: GB}}", "limits.hard.unit"),
    ):
        found = problems_of(more)
        assert list(found) == [key]
        assert "is no known key" in found[key].wrong


def test_the_prefix_is_ours_but_for_the_reserved_names() -> None:
    for name in RESERVED_VARIABLES:
        assert loaded("", {name: "x"}) == loaded()
    assert problems_of("", {"KQUOTA_TOPICS__COLOUR": "x"})["topics.colour"].source == (
        "environment variable KQUOTA_TOPICS__COLOUR"
    )


@pytest.mark.parametrize(
    ("text", "where", "word"),
    [
        ("mode: [", "line 1 column 8", "YAML"),
        ("mode: observe\nmode: enforce\n", "line 2 column 1", "twice"),
        ("- a\n- b\n", "agent.yml:", "no mapping"),
        ("a: &a [*a]\n? [x]\n: 1\n", "line", "YAML"),
        ("just text", "agent.yml:", "no mapping"),
        ("a: !!python/object/apply:os.system [ls]", "line 1", "YAML"),
        ("a: \x00", "agent.yml", "YAML"),
    ],
)
def test_what_is_no_yaml_mapping(text: str, where: str, word: str) -> None:
    (problem,) = problems(text)
    assert where in str(problem)
    assert word in str(problem)


def test_an_empty_file_lacks_what_has_no_default() -> None:
    assert {problem.key for problem in problems("# nothing\n")} == {"broker", "kafka"}


def test_a_variable_that_should_be_json() -> None:
    (problem,) = problems(MINIMAL, {"KQUOTA_LIMITS": "{oops"})
    assert problem.key == "limits"
    assert "JSON" in str(problem)


def test_a_file_that_cannot_be_read_is_a_problem_like_any_other(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yml"
    binary.write_bytes(b"mode: \xff")
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (1024 * 1024 + 1))
    for path, word in (
        (tmp_path / "none.yml", "No such file"),
        (tmp_path, "directory"),
        (binary, "UTF-8"),
        (large, "large"),
    ):
        with pytest.raises(SettingsError, match=word) as error:
            load(path, {})
        assert str(path) in str(error.value)


def test_load_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / PATH.name
    path.write_text(MINIMAL + "mode: enforce\n")
    assert load(path, {}) == loaded("mode: enforce\n")
