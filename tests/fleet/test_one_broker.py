"""kquota as a service of one broker, while processes, disks and permissions fail. Test follows test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from testbed.hosts.host import Host
from testbed.hosts.rollout import (
    AGENT,
    BROKER,
    OPERATOR,
    REPOSITORY,
    applied,
    decision,
    journal,
    metrics,
    now,
    play,
    property_of,
    wait_for,
)
from testbed.hosts.spec import VolumeSpec
from tests.fleet.conftest import MakeKafka
from tests.fleet.process_lists import secrets_of_scenarios

FIRST, SECOND = "/data/1", "/data/2"
VOLUMES = (
    VolumeSpec(path=FIRST, size_mebibytes=128),
    VolumeSpec(path=SECOND, size_mebibytes=128),
    VolumeSpec(path="/data/metadata", size_mebibytes=64),
)

JOURNAL = "systemd-journald.service"
JOURNAL_SOCKETS = ("systemd-journald.socket", "systemd-journald-dev-log.socket")
Measured = Callable[[str, object], None]

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def rolled_out(make_kafka: MakeKafka, packages: Path) -> tuple[Host, Path]:
    """A broker with kquota rolled out on it, enforcing, and the inventory."""
    fleet, inventory = make_kafka(["broker-1"], "trixie", VOLUMES)
    play(inventory, REPOSITORY / "playbooks/rollout.yml", kquota_dist_dir=str(packages))
    return fleet["broker-1"], inventory


@pytest.fixture(scope="module")
def host(rolled_out: tuple[Host, Path]) -> Host:
    return rolled_out[0]


@pytest.fixture(scope="module")
def inventory(rolled_out: tuple[Host, Path]) -> Path:
    return rolled_out[1]


@pytest.fixture(autouse=True)
def _well(host: Host) -> Iterator[None]:
    """Each test finds and leaves the broker open and enforcing."""
    is_well(host)
    yield
    is_well(host)


def is_well(host: Host) -> None:
    wait_for(lambda: property_of(host, AGENT, "ActiveState"), lambda state: state == "active")
    wait_for(lambda: applied(host), lambda seen: (seen.get("mode"), seen.get("state")) == ("enforce", "OPEN"))


def agent_process(host: Host) -> str:
    return property_of(host, AGENT, "MainPID")


@pytest.mark.accepts("C12")
def test_a_pause_begins_and_ends_without_a_restart_of_the_broker(host: Host):
    process = property_of(host, BROKER, "MainPID")
    host.run("kquota", "hold", "pause", "--for", "10m", "--reason", "a test", *OPERATOR)
    wait_for(lambda: applied(host), lambda seen: seen.get("state") == "PAUSE")
    host.run("kquota", "hold", "release", *OPERATOR)
    wait_for(lambda: applied(host), lambda seen: seen.get("state") == "OPEN")
    assert property_of(host, BROKER, "MainPID") == process


def states_until_replaced(host: Host, before: str) -> set[str]:
    """The states that the plug-in applies until another agent process has decided, which ends its start."""
    states = set()
    deadline = time.monotonic() + 120
    while agent_process(host) in {before, "0"} or property_of(host, AGENT, "ActiveState") != "active":
        states.add(applied(host).get("state"))
        assert time.monotonic() < deadline
        time.sleep(0.05)
    states.add(applied(host).get("state"))
    return states


@pytest.mark.accepts("F2")
def test_a_killed_agent_is_restarted_and_nobody_notices(host: Host):
    before = agent_process(host)
    restarts = int(property_of(host, AGENT, "NRestarts"))
    host.run("kill", "-KILL", before)
    assert states_until_replaced(host, before) == {"OPEN"}
    assert int(property_of(host, AGENT, "NRestarts")) == restarts + 1


@pytest.mark.accepts("F2")
def test_an_agent_that_runs_out_of_memory_is_restarted_and_nobody_notices(host: Host):
    before = agent_process(host)
    allowed = property_of(host, AGENT, "MemoryMax")
    killed = len(journal(host, "--grep=oom-kill|status=9/KILL|out of memory|killed").splitlines())
    try:
        # Nothing can be taken back from it below what it needs: the next bit is one too many.
        deadline = time.monotonic() + 60
        while agent_process(host) == before:
            in_use = property_of(host, AGENT, "MemoryCurrent")
            if not in_use.isdigit():
                break  # nothing runs any more
            limit = str(max(int(in_use) - 2**20, 2**22))
            host.run("systemctl", "set-property", "--runtime", AGENT, f"MemoryMax={limit}")
            # It reads its configuration again. Not by ExecReload=: systemd 253 and later wait for the
            # watchdog where the main process dies between RELOADING=1 and the end of that command.
            host.run("systemctl", "kill", "--kill-whom=main", "--signal=HUP", AGENT, check=False)
            assert time.monotonic() < deadline
    finally:
        host.run("systemctl", "set-property", "--runtime", AGENT, f"MemoryMax={allowed}")
    assert states_until_replaced(host, before) == {"OPEN"}
    told = journal(host, "--grep=oom-kill|status=9/KILL|out of memory|killed").splitlines()
    assert len(told) > killed


@pytest.mark.accepts("F3")
def test_a_stopped_agent_loses_its_lease_and_is_replaced(host: Host, record_property: Measured):
    before, mark, begun = agent_process(host), now(host), time.monotonic()
    host.run("kill", "-STOP", before)
    lost = wait_for(lambda: applied(host), lambda seen: seen.get("lost") is not None)
    record_property("safe_seconds", time.monotonic() - begun)
    assert lost["state"] == "PAUSE"
    assert "ran out" in lost["lost"]
    wait_for(lambda: agent_process(host), lambda pid: pid not in {before, "0"})
    assert "Watchdog timeout" in journal(host, f"--after-cursor={mark}")
    begun = time.monotonic()
    is_well(host)
    record_property("recovery_seconds", time.monotonic() - begun)


@pytest.mark.accepts("F18")
def test_a_mount_that_vanishes_is_never_taken_for_the_root_file_system(host: Host, record_property: Measured):
    volume, mark, begun = host.volumes[SECOND], now(host), time.monotonic()
    volume.detach()
    try:
        seen = wait_for(lambda: decision(host), lambda found: found["state"] == "PAUSE")
        assert {entry["cause"] for entry in seen["undetermined"]} == {"failed"}
        wait_for(lambda: applied(host), lambda found: found.get("state") == "PAUSE")
        record_property("safe_seconds", time.monotonic() - begun)
        assert SECOND in journal(host, f"--after-cursor={mark}")
    finally:
        volume.attach()
        begun = time.monotonic()
    is_well(host)
    record_property("recovery_seconds", time.monotonic() - begun)


@pytest.mark.accepts("F17")
def test_a_read_only_disk_is_undetermined_until_the_broker_takes_it_offline(
    host: Host, record_property: Measured
):
    volume, begun = host.volumes[FIRST], time.monotonic()
    volume.break_read_only()
    seen = wait_for(lambda: decision(host), lambda found: found["state"] == "PAUSE")
    record_property("safe_seconds", time.monotonic() - begun)
    assert {entry["cause"] for entry in seen["undetermined"]} == {"failed"}
    # The broker writes a checkpoint there once a minute, at the latest; then it has no vote, and no disk.
    offline = wait_for(lambda: applied(host), lambda found: found["offline_log_dirs"] != [])
    assert offline["offline_log_dirs"] == [f"{FIRST}/kafka"]
    wait_for(lambda: decision(host), lambda found: found["state"] == "OPEN")
    host.run("systemctl", "stop", BROKER)
    volume.detach()
    volume.attach()
    host.run("systemctl", "start", BROKER)
    wait_for(lambda: applied(host), lambda found: found["offline_log_dirs"] == [])


@pytest.mark.accepts("F31")
def test_at_boot_the_agent_is_there_before_the_broker(host: Host):
    host.power_off()
    host.start()
    host.wait_until_booted()
    wait_for(lambda: property_of(host, BROKER, "ActiveState"), lambda state: state == "active")
    ready = int(property_of(host, AGENT, "ActiveEnterTimestampMonotonic"))
    started = int(property_of(host, BROKER, "ExecMainStartTimestampMonotonic"))
    assert 0 < ready <= started


def total(host: Host, name: str) -> float:
    """A counter of the agent, whatever its labels."""
    return sum(value for metric, value in metrics(host).items() if metric.partition("{")[0] == name)


def expired_certificate(host: Host, authority: Path) -> str:
    """A certificate for the agent's own key that was good until an hour ago."""
    key = load_pem_private_key(host.read("/etc/kquota/tls/current/agent.key").encode(), None)
    passphrase = secrets_of_scenarios()["kquota_tls_ca_passphrase"]
    signer = load_pem_private_key((authority / "issuer.key").read_bytes(), passphrase.encode())
    assert isinstance(key, EllipticCurvePrivateKey)
    assert isinstance(signer, EllipticCurvePrivateKey)
    presented = host.read("/etc/kquota/tls/current/agent.pem").encode()
    present, issuer = x509.load_pem_x509_certificates(presented)
    end = datetime.now(UTC) - timedelta(hours=1)
    builder = (
        x509.CertificateBuilder(issuer.subject, present.subject, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .add_extension(
            present.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, critical=False
        )
    )
    signed = builder.sign(signer, hashes.SHA256())
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in (signed, issuer))


@pytest.mark.accepts("F22", "A14")
def test_an_expired_certificate_is_told_counted_and_rotated_without_a_restart(host: Host, inventory: Path):
    broker, agent, mark = property_of(host, BROKER, "MainPID"), agent_process(host), now(host)
    errors = total(host, "kquota_kafka_errors_total")
    expired = expired_certificate(host, inventory.parent / "authority")
    host.run("cp", "--archive", "/etc/kquota/tls/current/.", "/etc/kquota/tls/20000101T000000")
    host.write("/etc/kquota/tls/20000101T000000/agent.pem", expired, owner="root:kquota")
    host.run("ln", "--symbolic", "--force", "--no-dereference", "20000101T000000", "/etc/kquota/tls/current")
    wait_for(
        lambda: journal(host, f"--after-cursor={mark}"),
        lambda text: "certificate" in text and "expired" in text,
    )
    wait_for(lambda: total(host, "kquota_kafka_errors_total"), lambda count: count > errors)
    play(inventory, REPOSITORY / "playbooks/rotate_certificates.yml")
    wait_for(lambda: metrics(host)["kquota_connected"], lambda connected: connected == 1)
    assert (property_of(host, BROKER, "MainPID"), agent_process(host)) == (broker, agent)


def acl(host: Host, change: str, operation: str) -> None:
    host.run(
        *("/opt/kafka/bin/kafka-acls.sh", "--bootstrap-server", "broker-1:9093"),
        *("--command-config", "/etc/kafka/admin.properties", f"--{change}", "--force"),
        *("--allow-principal", "User:CN=kquota-agent,O=kquota", "--operation", operation),
        *("--topic", "__kquota_volume_usage"),
    )


@pytest.mark.accepts("F23")
@pytest.mark.parametrize(("operation", "word"), [("Read", "read"), ("Write", "write")])
def test_which_permission_is_denied_is_told(host: Host, operation: str, word: str):
    denied, mark = f"denied {word} on topic __kquota_volume_usage", now(host)
    before = denials(host)
    acl(host, "remove", operation)
    try:
        wait_for(lambda: journal(host, f"--after-cursor={mark}"), lambda text: denied in text)
        seen = wait_for(lambda: denials(host), lambda found: found[word] > before[word])
        others = {one for one in seen if one != word and seen[one] > before[one]}
        assert others == set(), f"{word} is not taken for another permission"
    finally:
        acl(host, "add", operation)


def denials(host: Host) -> dict[str, float]:
    """The agent's counts of denials, by the permission that it lacks."""
    seen = metrics(host)
    return {one: seen[f'kquota_denied_total{{operation="{one}"}}'] for one in ("read", "write", "describe")}


def test_what_an_interrupted_play_has_written_is_taken_up_by_the_next_one(
    host: Host, inventory: Path, packages: Path
):
    def roll_out_agents() -> str:
        said = play(
            inventory,
            REPOSITORY / "playbooks/rollout.yml",
            extra_environment={"ANSIBLE_RUN_TAGS": "kquota_agents"},
            kquota_dist_dir=str(packages),
        )
        return said.rsplit("PLAY RECAP", 1)[1]

    # As it is where a play wrote these files, and was interrupted before the agent took them up.
    before, mark = agent_process(host), now(host)
    host.run("touch", "/etc/kquota/agent.yml")
    assert "changed=1 " in roll_out_agents()
    assert agent_process(host) == before
    read_again = "the configuration was read again"
    wait_for(lambda: journal(host, f"--after-cursor={mark}"), lambda text: read_again in text)

    host.run("touch", f"/etc/systemd/system/{AGENT}.d/50-fleet.conf")
    assert "changed=1 " in roll_out_agents()
    assert agent_process(host) not in {before, "0"}

    assert "changed=0 " in roll_out_agents()


def silence_journal(host: Host, dead: bool) -> None:
    if dead:
        host.run("systemctl", "stop", *JOURNAL_SOCKETS, JOURNAL, check=False)
    else:
        host.run("systemctl", "kill", "--signal=STOP", JOURNAL)


@pytest.mark.accepts("F53")
@pytest.mark.parametrize("dead", [False, True], ids=["stopped", "dead"])
def test_without_a_journal_a_pause_begins_and_ends_as_ever(host: Host, dead: bool) -> None:
    before = agent_process(host)
    silence_journal(host, dead)
    try:
        for _ in range(3):
            host.run("kquota", "hold", "pause", "--for", "10m", "--reason", "a test", *OPERATOR)
            wait_for(lambda: applied(host), lambda seen: seen.get("state") == "PAUSE", timeout_seconds=60)
            host.run("kquota", "hold", "release", *OPERATOR)
            wait_for(lambda: applied(host), lambda seen: seen.get("state") == "OPEN", timeout_seconds=60)
        assert applied(host)["lost"] is None
    finally:
        host.run("systemctl", "kill", "--signal=CONT", JOURNAL, check=False)
        host.run("systemctl", "start", *JOURNAL_SOCKETS, JOURNAL, check=False)
    assert agent_process(host) == before
    host.run("kquota", "hold", "pause", "--for", "10m", "--reason", "a test", *OPERATOR)
    host.run("kquota", "hold", "release", *OPERATOR)
    wait_for(lambda: "PAUSE" in journal(host, "--since=-1min"), bool)
