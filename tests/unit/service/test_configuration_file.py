"""A bad configuration after a good start is answered with the last good one."""

import json
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from kquota.guard.agent_state import FILE_NAME, AgentState, AgentStateFile
from kquota.policy.decision import Mode
from kquota.service.configuration_file import ConfigurationFile
from kquota.settings import Settings, SettingsError

pytestmark = pytest.mark.accepts("F34")

SECRET = "hunter2-very-secret"


class Place:
    """A configuration file and a state directory of its own."""

    def __init__(self, root: Path) -> None:
        self.file, self.state = root / "agent.yml", root / "state"
        self.state.mkdir()

    def configure(self, more: str = "") -> None:
        self.file.write_text(
            "broker: {server_properties: /etc/kafka/server.properties}\n"
            f"kafka: {{bootstrap.servers: 'localhost:9093'}}\nstate_dir: {self.state}\n{more}"
        )


def load_or_last_good(file: Path, environ: Mapping[str, str]) -> tuple[Settings, SettingsError | None]:
    """Return the settings that an agent starts with, and the problem of the present configuration."""
    configuration = ConfigurationFile(file, environ)
    try:
        settings = configuration.load()
    except SettingsError as error:
        last_good = configuration.last_good()
        if last_good is None:
            raise
        return last_good, error
    remember(configuration, settings)
    return settings, None


def remember(configuration: ConfigurationFile, settings: Settings) -> None:
    """Have the state file hold it, as the agent does."""
    state = AgentState(good_configuration=configuration.good(settings))
    AgentStateFile(settings.state_dir / FILE_NAME, take_over=True).save(state)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_first_start_with_a_bad_file_fails(place: Place) -> None:
    place.configure("mode: maybe\n")
    with pytest.raises(SettingsError, match="mode is 'maybe'"):
        load_or_last_good(place.file, {})
    assert list(place.state.iterdir()) == []


@pytest.mark.parametrize("bad", ["mode: maybe\n", "mode: [", "colour: blue\n"])
def test_a_bad_file_later_is_reported_and_the_last_good_one_kept(place: Place, bad: str) -> None:
    place.configure("mode: enforce\n")
    good, nothing = load_or_last_good(place.file, {})
    assert nothing is None
    place.configure(bad)
    for _ in range(2):
        settings, error = load_or_last_good(place.file, {})
        assert settings == good
        assert error is not None
        assert str(place.file) in str(error)
    place.configure("mode: observe\n")
    settings, nothing = load_or_last_good(place.file, {})
    assert (settings.mode, nothing) == (Mode.OBSERVE, None)


def test_a_file_that_vanished_too(place: Place) -> None:
    place.configure()
    good, _ = load_or_last_good(place.file, {"STATE_DIRECTORY": str(place.state)})
    place.file.unlink()
    settings, error = load_or_last_good(place.file, {"STATE_DIRECTORY": f"{place.state}:/other"})
    assert settings == good
    assert "No such file" in str(error)


@pytest.mark.parametrize("moved", ["state_dir: {new}\nmode: maybe\n", "state_dir: {new}\nbroker: {{}}\n"])
def test_a_bad_file_that_also_names_another_state_directory(place: Place, tmp_path: Path, moved: str) -> None:
    place.configure()
    environ = {"STATE_DIRECTORY": str(place.state)}
    good, _ = load_or_last_good(place.file, environ)
    place.file.write_text(moved.format(new=tmp_path / "elsewhere"))
    settings, error = load_or_last_good(place.file, environ)
    assert settings == good
    assert error is not None


def test_a_file_that_is_only_found_bad_when_it_is_used_and_names_another_state_directory(
    place: Place, tmp_path: Path
) -> None:
    place.configure()
    environ = {"STATE_DIRECTORY": str(place.state)}
    good, _ = load_or_last_good(place.file, environ)
    place.file.write_text(place.file.read_text().replace(str(place.state), str(tmp_path / "elsewhere")))
    configuration = ConfigurationFile(place.file, environ)
    configuration.load()
    assert configuration.last_good() == good


def test_a_bad_variable_is_answered_with_the_variables_of_the_good_day(place: Place) -> None:
    place.configure()
    load_or_last_good(place.file, {"KQUOTA_MODE": "enforce"})
    settings, error = load_or_last_good(place.file, {"KQUOTA_MODE": "maybe"})
    assert settings.mode is Mode.ENFORCE
    assert "KQUOTA_MODE" in str(error)


def test_the_memory_is_for_the_agent_alone_and_secrets_of_the_environment_are_not_in_it(place: Place) -> None:
    place.configure()
    environ = {"KQUOTA_KAFKA__SASL_PASSWORD": SECRET, "KQUOTA_MODE": "enforce"}
    load_or_last_good(place.file, environ)
    file = place.state / FILE_NAME
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SECRET not in file.read_text()
    place.configure("mode: maybe\n")
    settings, _ = load_or_last_good(place.file, environ | {"KQUOTA_MODE": "x"})
    assert settings.librdkafka()["sasl.password"] == SECRET


def test_a_damaged_memory_is_no_memory(place: Place) -> None:
    place.configure()
    load_or_last_good(place.file, {})
    file = place.state / FILE_NAME
    document = json.loads(file.read_text())
    place.configure("mode: maybe\n")
    for damage in ({"path": "/etc/other.yml"}, {"document": 7}, {"document": {"mode": "enforce"}}):
        good = document["good_configuration"] | damage
        file.write_text(json.dumps(document | {"good_configuration": good}))
        with pytest.raises(SettingsError, match="mode is 'maybe'"):
            load_or_last_good(place.file, {})
    for content in ("", "[]", "{"):
        file.write_text(content)
        with pytest.raises(SettingsError, match="mode is 'maybe'"):
            load_or_last_good(place.file, {})


@pytest.mark.parametrize(
    "more",
    [
        "release_margin_ratio: 0.12345678901234567\n",
        "limits: {hard: {type: MinFreePercentage, level: 2.5}, volumes: {/data: {soft: {type: ConsumedSpace,"
        " level: 1_000}}}}\n",
        "relief_protected: [pay*]\ntopics: {usage: {partitions: null}}\n",
    ],
)
def test_what_is_remembered_is_exactly_what_was_in_force(place: Place, more: str) -> None:
    place.configure(more)
    environ = {"KQUOTA_LIMITS__SOFT": '{"type": "ConsumedSpace", "level": 7.5}'}
    good, _ = load_or_last_good(place.file, environ)
    place.configure("mode: maybe\n")
    settings, _ = load_or_last_good(place.file, {})
    assert settings == good


def test_a_memory_that_can_not_be_used_shows_that_there_was_a_good_start(place: Place) -> None:
    def remembers() -> bool:
        configuration = ConfigurationFile(place.file, {})
        with pytest.raises(SettingsError):
            configuration.load()
        return configuration.was_good()

    place.configure("mode: maybe\n")
    assert not remembers(), "a first start"
    place.configure()
    load_or_last_good(place.file, {})
    place.configure("mode: maybe\n")
    assert remembers()
    file = place.state / FILE_NAME
    document = json.loads(file.read_text())
    unusable = document | {"good_configuration": document["good_configuration"] | {"document": {}}}
    for damaged in ("", "[]", json.dumps(unusable)):
        file.write_text(damaged)
        assert remembers()
    other = document["good_configuration"] | {"path": "/etc/other.yml"}
    file.write_text(json.dumps(document | {"good_configuration": other}))
    assert not remembers(), "another agent's"


def test_a_directory_that_can_not_be_looked_into_shows_no_good_start(place: Place) -> None:
    place.configure("mode: maybe\n")
    configuration = ConfigurationFile(place.file, {"STATE_DIRECTORY": f"/{'x' * 300}"})
    with pytest.raises(SettingsError):
        configuration.load()
    assert configuration.last_good() is None
    assert not configuration.was_good()


@pytest.mark.parametrize(
    ("name", "value", "is_kept"),
    [
        ("KQUOTA_KAFKA", json.dumps({"bootstrap.servers": "h:1", "ssl.key.password": SECRET}), False),
        ("KQUOTA_KAFKA__SSL_KEY_PASSWORD", SECRET, False),
        ("KQUOTA_KAFKA", json.dumps({"bootstrap.servers": "h:1"}), True),
        ("KQUOTA_KAFKA__CLIENT_RACK", "rack-7", True),
    ],
)
def test_of_the_environment_all_but_secrets_is_kept(
    place: Place, name: str, value: str, is_kept: bool
) -> None:
    place.configure()
    configuration = ConfigurationFile(place.file, {name: value, "PATH": "/bin"})
    kafka = configuration.good(configuration.load()).document["kafka"]
    shown = json.dumps(kafka)
    assert SECRET not in shown
    assert ("h:1" in shown or "rack-7" in shown) == is_kept
