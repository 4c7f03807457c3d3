"""The units: the requirements of the agent's work and the brokers' leases."""

from __future__ import annotations

from collections import defaultdict

import pytest

from kquota.guard.agent_state import FILE_NAME
from kquota.service.daemon import EXIT_CONFIGURATION
from kquota.settings.model import MAX_SAMPLE_INTERVAL_SECONDS, Settings
from tests.unit.repository.tree import REPOSITORY

UNITS = {
    name: (REPOSITORY / f"packaging/systemd/{name}").read_text("utf-8")
    for name in ("kquota-agent.service", "kquota-agent@.service")
}


def directives(text: str) -> dict[str, list[str]]:
    """Return the values of each directive, in order."""
    values: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if "=" in line and not line.startswith("#"):
            name, value = line.split("=", 1)
            values[name].append(value)
    return dict(values)


@pytest.fixture(params=sorted(UNITS))
def unit(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    return directives(UNITS[request.param])


def test_the_template_differs_in_names_alone():
    template = directives(UNITS["kquota-agent@.service"])
    single = directives(UNITS["kquota-agent.service"])
    assert template.keys() == single.keys()
    differing = {name for name in single if single[name] != template[name]}
    assert differing == {
        "Description",
        "Before",
        "ConditionPathExists",
        "ExecStart",
        "RuntimeDirectory",
        "StateDirectory",
    }
    for name in ("ConditionPathExists", "ExecStart"):
        of_one = [
            value.replace("%i.yml", "agent.yml").replace("kquota-%i/", "kquota/") for value in template[name]
        ]
        assert of_one == single[name]
    for name in ("RuntimeDirectory", "StateDirectory"):
        assert (single[name], template[name]) == (["kquota"], ["kquota-%i"])


def test_its_directories_are_those_of_the_configuration_s_defaults(unit: dict[str, list[str]]):
    single = directives(UNITS["kquota-agent.service"])
    fields = Settings.model_fields
    assert str(fields["decision_file"].default) == f"/run/{single['RuntimeDirectory'][0]}/decision.json"
    assert str(fields["state_dir"].default) == f"/var/lib/{single['StateDirectory'][0]}"
    assert unit["ConditionPathExists"][1].endswith(f"/{FILE_NAME}")


def test_reloads_do_not_scatter_free_memory_over_many_arenas(unit: dict[str, list[str]]):
    assert unit["Environment"] == ["MALLOC_ARENA_MAX=2"]


def test_only_a_refused_configuration_ends_the_restarts(unit: dict[str, list[str]]):
    assert unit["Restart"] == ["always"]
    assert unit["StartLimitIntervalSec"] == ["0"]
    assert unit["RestartPreventExitStatus"] == [str(EXIT_CONFIGURATION)]


def test_neither_broker_nor_agent_needs_the_other(unit: dict[str, list[str]]):
    assert "kafka.service" in unit["Before"][0].split()
    assert not unit.keys() & {"Requires", "BindsTo", "PartOf", "RequiredBy", "Requisite", "Upholds"}


def test_the_decision_outlives_a_restart_where_the_broker_can_read_it(unit: dict[str, list[str]]):
    assert unit["RuntimeDirectoryPreserve"] == ["yes"]
    assert unit["RuntimeDirectoryMode"] == ["0755"]
    assert unit["StateDirectoryMode"] == ["0700"]


def test_nothing_hides_log_dirs_the_broker_s_process_or_the_clock_of_leases(unit: dict[str, list[str]]):
    assert unit["ProtectHome"] == ["read-only"]
    assert unit["PrivateTmp"] == ["no"]
    assert not unit.keys() & {
        "ProcSubset",
        "ProtectProc",
        "InaccessiblePaths",
        "TemporaryFileSystem",
        "RootDirectory",
        "PrivateUsers",
    }


def test_there_is_room_for_the_clients_of_a_large_cluster_twice_for_reloads(
    unit: dict[str, list[str]],
):
    clients, brokers = 4, 1000
    # For each broker of the cluster, each client has a thread, and a pipe's two descriptors.
    assert int(unit["TasksMax"][0]) >= 2 * clients * (brokers + 4) + 64
    assert int(unit["LimitNOFILE"][0]) >= 2 * clients * 2 * brokers + 512


def test_the_watchdog_bears_with_the_rarest_cycles_that_can_be_configured(unit: dict[str, list[str]]):
    assert int(unit["WatchdogSec"][0]) >= 3 * MAX_SAMPLE_INTERVAL_SECONDS
