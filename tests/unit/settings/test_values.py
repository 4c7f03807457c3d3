"""Each value is read exactly, or refused with the allowed values."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from kquota.formats.signature_headers import SigningMode
from kquota.policy.decision import FallbackAction, Mode, Scope
from kquota.policy.limits import Limit, LimitPair, LimitType
from kquota.settings.values import ListenAddress, LogLevel
from tests.unit.settings.configuration import loaded, problems_of


def test_the_defaults() -> None:
    settings = loaded()
    assert settings.broker.server_properties == Path("/etc/kafka/server.properties")
    assert settings.broker.node_id is None
    assert settings.mode is Mode.OBSERVE
    assert settings.scope is Scope.CLUSTER
    assert settings.fallback_action is FallbackAction.PAUSE
    assert settings.release_margin_ratio == Fraction(1, 10)
    assert settings.interval_seconds == 5
    assert settings.sample_interval_seconds == 0.2
    assert settings.staleness_seconds == 60
    assert settings.lease_seconds == 30
    assert settings.topics.usage.name == "__kquota_volume_usage"
    assert settings.topics.history.name == "__kquota_history"
    assert settings.topics.create is True
    assert settings.metrics.listen == ListenAddress("127.0.0.1", 9464)
    assert settings.log.level is LogLevel.INFO
    assert settings.decision_file == Path("/run/kquota/decision.json")
    assert settings.warnings() == ()


@pytest.mark.accepts("A2")
@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("12.5", Fraction(25, 2)),
        ("0.1", Fraction(1, 10)),
        ("'0.1'", Fraction(1, 10)),
        ("3.14159265358979", Fraction(314159265358979, 10**14)),
        ("0", Fraction(0)),
        ("100", Fraction(100)),
        ("100.0", Fraction(100)),
    ],
)
def test_levels_are_exact(text: str, level: Fraction) -> None:
    settings = loaded(
        "limits:\n  hard: {type: MinFreeBytes, level: 1}\n"
        f"  soft: {{type: MinFreePercentage, level: {text}}}\n"
    )
    assert settings.limits.soft == Limit(LimitType.MIN_FREE_PERCENTAGE, level)


@pytest.mark.accepts("A2")
@pytest.mark.parametrize(
    ("type_name", "level", "said"),
    [
        ("MinFreePercentage", "3.14159265358979323846", "would be published as 3.141592653589793"),
        ("MinFreeBytes", "0.12345678901234567890", "would be published as 0.12345678901234568"),
        ("MinFreeBytes", "9007199254740991.5", "would be published as 9007199254740992.0"),
        ("ConsumedSpace", "9007199254740993", "is 9007199254740993"),
        ("ConsumedSpace", "9223372036854775807", "is 9223372036854775807"),
    ],
)
def test_a_level_that_others_would_read_otherwise_is_refused(type_name: str, level: str, said: str) -> None:
    found = problems_of(f"limits: {{hard: {{type: {type_name}, level: {level}}}}}")
    assert said in found["limits.hard.level"].wrong
    volume = f"{{volumes: {{/data: {{hard: {{type: {type_name}, level: {level}}}}}}}}}"
    assert said in problems_of(f"limits: {volume}")["limits.volumes./data.hard.level"].wrong


@pytest.mark.parametrize("level", ["0.1", "4.35", "12.3456789012345", "33.33", "99.999999"])
def test_what_is_published_of_a_level_reads_as_the_same_number(level: str) -> None:
    limit = loaded(f"limits: {{hard: {{type: MinFreeBytes, level: {level}}}}}").limits.hard
    assert Limit.parse(json.loads(json.dumps(limit.to_document()))) == limit


def test_levels_from_the_environment_are_exact_too() -> None:
    for environ in (
        {"KQUOTA_LIMITS__HARD__LEVEL": "4.35"},
        {"KQUOTA_LIMITS__HARD": '{"type": "MinFreePercentage", "level": 4.35}'},
        {"KQUOTA_LIMITS": '{"hard": {"type": "MinFreePercentage", "level": "4.35"}}'},
    ):
        more = "limits: {hard: {type: MinFreePercentage, level: 5}}"
        assert loaded(more, environ).limits.hard.level == Fraction(435, 100)


@pytest.mark.accepts("A2")
@pytest.mark.parametrize("type_name", ["consumedspace", "MinFree", "", "5", "null", "[a]"])
def test_another_limit_type_is_refused(type_name: str) -> None:
    found = problems_of(f"limits: {{hard: {{type: {type_name or repr('')}, level: 5}}}}")
    assert all(one in found["limits.hard.type"].allowed for one in LimitType)


@pytest.mark.accepts("A2")
@pytest.mark.parametrize(
    ("type_name", "level"),
    [
        ("MinFreePercentage", "-0.001"),
        ("MinFreePercentage", "100.001"),
        ("MinFreeBytes", "-1"),
        ("ConsumedSpace", "9223372036854775808"),
        ("ConsumedSpace", ".nan"),
        ("ConsumedSpace", ".inf"),
        ("ConsumedSpace", "true"),
        ("ConsumedSpace", "10 GB"),
        ("ConsumedSpace", "null"),
        ("ConsumedSpace", "1e999999999"),
        ("ConsumedSpace", "[1]"),
    ],
)
def test_a_level_out_of_range_is_refused(type_name: str, level: str) -> None:
    found = problems_of(f"limits: {{hard: {{type: {type_name}, level: {level}}}}}")
    assert "between 0 and 100" in found["limits.hard.level"].allowed


@pytest.mark.accepts("A29")
def test_soft_not_below_hard_is_refused_for_one_type_only() -> None:
    for soft, hard, kind in (
        (5, 5, "MinFreePercentage"),
        (10, 10, "ConsumedSpace"),
        (11, 10, "ConsumedSpace"),
    ):
        more = f"limits: {{soft: {{type: {kind}, level: {soft}}}, hard: {{type: {kind}, level: {hard}}}}}"
        assert list(problems_of(more)) == ["limits.soft"]
    loaded("limits: {soft: {type: MinFreePercentage, level: 1}, hard: {type: MinFreeBytes, level: 99999999}}")


@pytest.mark.accepts("A25", "A29")
def test_a_volume_overrides_what_it_names() -> None:
    more = """
limits:
  hard: {type: MinFreePercentage, level: 5}
  soft: {type: MinFreePercentage, level: 15}
  volumes:
    /data/1: {hard: {type: MinFreePercentage, level: 10}}
    /data/2: {hard: {type: MinFreePercentage, level: 20}}
    /data/3: {soft: {type: MinFreePercentage, level: 30}, hard: {type: MinFreePercentage, level: 20}}
"""
    found = problems_of(more)
    assert list(found) == ["limits.volumes./data/2"]
    assert "15 %" in str(found["limits.volumes./data/2"])

    limits = loaded(more.replace("    /data/2: {hard: {type: MinFreePercentage, level: 20}}\n", "")).limits

    def percent(level: int) -> Limit:
        return Limit(LimitType.MIN_FREE_PERCENTAGE, Fraction(level))

    assert limits.pair("/data/1") == LimitPair(soft=percent(15), hard=percent(10))
    assert limits.pair("/data/3") == LimitPair(soft=percent(30), hard=percent(20))
    assert limits.pair(None) == LimitPair(soft=percent(15), hard=percent(5))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("release_margin_ratio", "1.01"),
        ("release_margin_ratio", "-0.1"),
        ("mode", "on"),
        ("mode", "ENFORCE"),
        ("scope", "topics"),
        ("scope", "VOLUME"),
        ("fallback_action", "throttle"),
        ("interval_seconds", "0"),
        ("interval_seconds", "5s"),
        ("interval_seconds", "true"),
        ("hang_seconds", "null"),
        ("future_tolerance_seconds", "-1"),
        ("decision_file", "decision.json"),
        ("decision_file", "/run/../etc/decision.json"),
        ("state_dir", "7"),
        ("broker.node_id", "-1"),
        ("broker.node_id", "1.5"),
        ("broker.node_id", "one"),
        ("topics.usage.name", "a b"),
        ("topics.usage.name", ".."),
        ("topics.usage.partitions", "0"),
        ("topics.usage.replication_factor", "0"),
        ("topics.create", "1"),
        ("topics.history.retention_bytes", "1"),
        ("topics.history.retention_hours", "0"),
        ("metrics.listen", "9464"),
        ("metrics.listen", "localhost"),
        ("metrics.listen", "127.0.0.1:65536"),
        ("metrics.listen", "::1:9464"),
        ("metrics.listen", "'[::1:9464'"),
        ("log.level", "verbose"),
        ("limits.volumes", "7"),
    ],
)
def test_a_refused_value_is_named_with_its_key_and_what_is_allowed(key: str, value: str) -> None:
    *sections, last = key.split(".")
    more = "".join(f"{'  ' * depth}{name}:\n" for depth, name in enumerate(sections))
    more += f"{'  ' * len(sections)}{last}: {value}\n"
    if sections == ["broker"]:
        environ: dict[str, str] = {"KQUOTA_" + key.upper().replace(".", "__"): value}
        found = problems_of("", environ)
        assert found[key].source == "environment variable KQUOTA_BROKER__NODE_ID"
    else:
        found = problems_of(more)
        line = 4 + len(sections) + 1
        assert found[key].source == f"/etc/kquota/agent.yml line {line}"
    assert list(found) == [key]
    problem = found[key]
    assert problem.value is not None
    assert problem.allowed
    assert str(problem) == f"{problem.source}: {key} {problem.wrong}; allowed: {problem.allowed}"


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("127.0.0.1:0", ListenAddress("127.0.0.1", 0), "127.0.0.1:0"),
        ("'[::1]:9464'", ListenAddress("::1", 9464), "[::1]:9464"),
        ("metrics.example.com:80", ListenAddress("metrics.example.com", 80), "metrics.example.com:80"),
    ],
)
def test_listen_addresses(text: str, address: ListenAddress, shown: str) -> None:
    listen = loaded(f"metrics: {{listen: {text}}}").metrics.listen
    assert listen == address
    assert str(listen) == shown


@pytest.mark.parametrize("mount_point", ["data", "/data/", "//data", "/data/../etc", "/data/./1", "''"])
def test_volumes_are_keyed_by_paths(mount_point: str) -> None:
    found = problems_of(f"limits: {{volumes: {{{mount_point}: {{}}}}}}")
    (problem,) = found.values()
    assert problem.wrong == "is no path of a volume"


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("staleness_seconds: 5\n", "staleness_seconds"),
        ("lease_seconds: 5\n", "lease_seconds"),
        ("hang_seconds: 30\n", "lease_seconds"),
        ("hang_seconds: 60\nlease_seconds: 100\n", "staleness_seconds"),
        ("sample_interval_seconds: 6\n", "sample_interval_seconds"),
        ("sample_interval_seconds: 11\ninterval_seconds: 20\n", "sample_interval_seconds"),
        ("topics: {history: {name: __kquota_volume_usage}}\n", "topics.history.name"),
    ],
)
def test_keys_that_do_not_fit_together(more: str, key: str) -> None:
    found = problems_of(more)
    assert list(found) == [key]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ("staleness_seconds: 18\n", "broker.session.timeout.ms"),
        ("fallback_action: open\n", "run full"),
        ("metrics: {listen: '0.0.0.0:9464'}\n", "every client"),
    ],
)
def test_what_is_allowed_but_seldom_meant_is_a_warning(more: str, word: str) -> None:
    (warning,) = loaded(more).warnings()
    assert word in warning


def test_an_empty_section_is_its_defaults() -> None:
    assert loaded("topics:\nlimits:\nmetrics:\n") == loaded()


def test_equal_files_give_equal_settings_and_they_are_frozen() -> None:
    first: Any = loaded("mode: enforce\n")
    assert first == loaded("mode: 'enforce'  # a comment\n")
    assert first != loaded()
    with pytest.raises(ValueError, match="frozen"):
        first.mode = Mode.OBSERVE


SIGNING_FILES = {
    "certificate_file": "ssl.certificate.location",
    "key_file": "ssl.key.location",
    "ca_file": "ssl.ca.location",
}


@pytest.mark.parametrize("text", ["off", "'off'", "false"])
def test_signing_off_is_off_however_yaml_reads_it(text: str) -> None:
    assert loaded(f"signing:\n  mode: {text}\n").signing.mode is SigningMode.OFF
    assert loaded(environ={"KQUOTA_SIGNING__MODE": "off"}).signing.mode is SigningMode.OFF


@pytest.mark.parametrize("text", ["on", "true", "null", "always", "OFF1"])
def test_other_modes_of_signing_are_refused_with_those_that_are_allowed(text: str) -> None:
    problem = problems_of(f"signing:\n  mode: {text}\n")["signing.mode"]
    assert problem.allowed == "off, accept or required"


@pytest.mark.parametrize("mode", ["accept", "required"])
def test_a_file_that_neither_section_names_is_missing(mode: str) -> None:
    found = problems_of(f"signing:\n  mode: {mode}\n")
    assert found.keys() == {f"signing.{key}" for key in SIGNING_FILES}
    for key, name in SIGNING_FILES.items():
        assert name in found[f"signing.{key}"].wrong
    paths = "".join(f"  {key}: /own/{key}\n" for key in SIGNING_FILES)
    settings = loaded(f"signing:\n  mode: {mode}\n{paths}")
    assert settings.signing_file("key_file") == Path("/own/key_file")


def test_a_file_of_signing_is_that_of_the_kafka_clients_unless_it_has_its_own() -> None:
    environ = {
        f"KQUOTA_KAFKA__{name.upper().replace('.', '_')}": f"/{name}" for name in SIGNING_FILES.values()
    }
    settings = loaded("signing:\n  mode: required\n  key_file: /own.key\n", environ)
    assert settings.signing_file("key_file") == Path("/own.key")
    assert settings.signing_file("ca_file") == Path("/ssl.ca.location")
