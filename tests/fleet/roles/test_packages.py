"""Which package each host gets, and which hosts are refused, by what Ansible finds out about them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fleet.roles.plays import PlayFailed, run_play
from tests.unit.repository.tree import REPOSITORY

ACCEPTED = [
    ("Debian", "12.11"),
    ("Debian", "13.1"),
    ("Ubuntu", "24.04"),
    ("RedHat", "9.6"),
    ("CentOS", "10"),
    ("Rocky", "9.6"),
    ("AlmaLinux", "10.0"),
    ("OracleLinux", "9.5"),
]
REFUSED = [
    ("Debian", "11.9"),
    ("Ubuntu", "22.04"),
    ("Ubuntu", "24.10"),
    ("RedHat", "8.10"),
    ("Rocky", "11.0"),
    ("Fedora", "43"),
    ("SLES", "15.6"),
]
FAMILIES = {"Debian": "Debian", "Ubuntu": "Debian", "SLES": "Suse"}
FILES = {
    ("Debian", "12.11"): ("kquota_0.1.0-1~deb12_amd64.deb", "kquota=0.1.0-1~deb12"),
    ("Debian", "13.1"): ("kquota_0.1.0-1~deb13_amd64.deb", "kquota=0.1.0-1~deb13"),
    ("Ubuntu", "24.04"): ("kquota_0.1.0-1~ubuntu24.04_amd64.deb", "kquota=0.1.0-1~ubuntu24.04"),
    ("Rocky", "9.6"): ("kquota-0.1.0-1.el9.x86_64.rpm", "kquota-0.1.0-1.el9"),
    ("CentOS", "10"): ("kquota-0.1.0-1.el10.x86_64.rpm", "kquota-0.1.0-1.el10"),
}
OF_THE_PLUG_IN = {"Debian": "kquota-callback_0.1.0_all.deb", "RedHat": "kquota-callback-0.1.0-1.noarch.rpm"}


def facts(name: str, version: str, machine: str = "x86_64") -> dict[str, str]:
    return {
        "os_family": FAMILIES.get(name, "RedHat"),
        "distribution": name,
        "distribution_version": version,
        "distribution_major_version": version.partition(".")[0],
        "architecture": machine,
        "service_mgr": "systemd",
    }


def entrance(role: str, part: str, **variables: object) -> dict[str, Any]:
    return {"ansible.builtin.include_role": {"name": role, "tasks_from": part}, "vars": variables}


def words(output: str) -> str:
    """The output of Ansible in one line, as a message reads."""
    return re.sub(r"\s+", " ", output)


def test_hosts_without_a_package_are_refused_with_those_that_have_one(tmp_path: Path) -> None:
    hosts = [facts(*host) for host in ACCEPTED + REFUSED] + [facts("Debian", "13.1", "s390x")]
    tasks = [
        {
            "vars": {"ansible_facts": host},
            "block": [
                entrance("kquota_package", "preflight"),
                {"ansible.builtin.debug": {"msg": f"ACCEPTED {host['distribution']} {number}"}},
            ],
            "rescue": [{"ansible.builtin.debug": {"msg": f"REFUSED {number}"}}],
        }
        for number, host in enumerate(hosts)
    ]
    output = run_play(tmp_path, tasks, {})
    assert [int(number) for number in re.findall(r"ACCEPTED \w+ (\d+)", output)] == [*range(len(ACCEPTED))]
    allowed = (
        "only for Debian 12 and 13, Ubuntu 24.04, and RHEL, CentOS Stream, Rocky Linux, AlmaLinux and "
        "Oracle Linux 9 and 10, on x86_64 and aarch64: set kquota_agent_install_method to wheels"
    )
    for name, version in REFUSED:
        assert f"localhost runs {name} {version} on x86_64, but there are packages {allowed}" in words(output)
    assert f"localhost runs Debian 13.1 on s390x, but there are packages {allowed}" in words(output)


def test_each_host_gets_the_package_of_its_distribution(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = []
    # Entry points of the roles that change nothing, for their variables.
    for role, part in (
        ("kquota_agent", "service"),
        ("kquota_callback", "facts_properties"),
        ("kquota_package", "remove"),
    ):
        load = {"ansible.builtin.import_role": {"name": role, "tasks_from": part}, "when": False}
        tasks.append(load)
    names = ("kquota_agent_package_file", "kquota_callback_package_file", "kquota_package_wanted")
    shown = " ".join(f"{{{{ {name} }}}}" for name in names)
    for host in FILES:
        variables = {
            "ansible_facts": facts(*host),
            "kquota_package_name": "kquota",
            "kquota_package_version": "{{ kquota_agent_version }}-{{ kquota_agent_package_release }}",
        }
        tasks.append({"ansible.builtin.debug": {"msg": f"GETS {shown}"}, "vars": variables})
    output = run_play(tmp_path, tasks, {})
    assert re.findall(r"GETS (\S+ \S+ [^\s\"]+)", words(output)) == [
        f"{file} {OF_THE_PLUG_IN[facts(*host)['os_family']]} {of_repository}"
        for host, (file, of_repository) in FILES.items()
    ]


@pytest.mark.parametrize(
    ("role", "part", "checks"),
    [
        ("kquota_agent", "service", "preflight_host"),
        ("kquota_callback", "facts_properties", "preflight_node"),
    ],
)
def test_a_package_that_the_control_host_lacks_is_named_before_anything_is_changed(
    role: str, part: str, checks: str, tmp_path: Path
) -> None:
    text = (REPOSITORY / f"roles/{role}/tasks/{checks}.yml").read_text("utf-8")
    (check,) = [task for task in yaml.safe_load(text) if task["name"] == "Preflight | Check the distribution"]
    load = {"ansible.builtin.import_role": {"name": role, "tasks_from": part}, "when": False}
    given = {"ansible_facts": facts("Debian", "13.1"), "kquota_dist_dir": str(tmp_path)}
    with pytest.raises(PlayFailed) as failed:
        run_play(tmp_path, [load, check], given)
    package = OF_THE_PLUG_IN["Debian"] if role == "kquota_callback" else FILES["Debian", "13.1"][0]
    missing = f"localhost needs {tmp_path}/{package}, which is not on the control host: set kquota_dist_dir"
    assert missing in words(str(failed.value))
    run_play(tmp_path, [load, check], {**given, f"{role}_package_source": "repository"})
    (tmp_path / package).touch()
    run_play(tmp_path, [load, check], given)


@pytest.mark.parametrize(
    ("role", "part", "checks", "installs", "others"),
    [
        ("kquota_agent", "service", "preflight_host", "kquota_agents", "kquota_plug_in"),
        ("kquota_callback", "facts_properties", "preflight_node", "kquota_plug_in", "kquota_agents"),
    ],
)
def test_only_runs_that_can_install_need_the_files(
    role: str, part: str, checks: str, installs: str, others: str, tmp_path: Path
) -> None:
    text = (REPOSITORY / f"roles/{role}/tasks/{checks}.yml").read_text("utf-8")
    names = ["Preflight | Check the distribution", "Preflight | Verify the files of the release"]
    tasks = [task for task in yaml.safe_load(text) if task["name"] in names]
    assert [task["name"] for task in tasks] == names
    tasks[1]["ansible.builtin.import_tasks"] = str(REPOSITORY / f"roles/{role}/tasks/preflight_release.yml")
    load = {"ansible.builtin.import_role": {"name": role, "tasks_from": part}, "when": False}
    # With the tags of the preflight's play.
    block = {"tags": ["always", "kquota_preflight"], "ignore_errors": True, "block": [load, *tasks]}
    given = {
        "ansible_facts": facts("Debian", "13.1"),
        "kquota_dist_dir": str(tmp_path / "dist"),
        "kquota_release_signers": str(tmp_path / "signers"),
    }
    for option in (
        f"--tags=kquota_tls,kquota_topics,kquota_acls,kquota_mode,{others}",
        f"--skip-tags={installs}",
    ):
        assert "ignored=0" in run_play(tmp_path, [block], given, option)
    # Without the package, and without the keys of the signers.
    assert "ignored=2" in run_play(tmp_path, [block], given, f"--tags=kquota_tls,{installs}")


def test_the_package_is_looked_for_where_it_is_copied_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for folder in ("home", "dist"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.deb").touch()
    block = {
        "vars": {"ansible_facts": facts("Debian", "13.1")},
        "ignore_errors": True,
        "block": [
            entrance("kquota_package", "preflight", kquota_package_file=file)
            # The folder of the play is tmp_path.
            for file in ("~/a.deb", "dist/a.deb", "~/b.deb", "dist/b.deb")
        ],
    }
    output = run_play(tmp_path, [block], {})
    missing = set(re.findall(r"localhost needs (\S+), which is not", words(output)))
    assert missing == {"~/b.deb", "dist/b.deb"}


def test_only_where_selinux_is_on_files_get_the_contexts_of_its_policy(tmp_path: Path) -> None:
    program = tmp_path / "restorecon"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\necho "Relabeled $4 from a to b"\n')
    program.chmod(0o755)
    states: list[object] = [
        {"status": "Missing selinux Python library"},
        {"status": "disabled"},
        None,
        {"status": "enabled"},
    ]
    tasks = [
        entrance(
            "kquota_package",
            "contexts",
            ansible_facts={"selinux": state} if state else {},
            kquota_package_paths=["/run/kquota", f"/run/{number}"],
        )
        for number, state in enumerate(states)
    ]
    play = [{"environment": {"PATH": f"{tmp_path}:/usr/sbin:/usr/bin"}, "block": tasks}]
    assert "changed=1 " in run_play(tmp_path, play, {})
    assert (tmp_path / "calls").read_text() == "-R -v -i /run/kquota /run/3\n"
