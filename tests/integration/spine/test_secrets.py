"""No secret of a running agent is anywhere that others look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from cryptography.hazmat.primitives import serialization

from tests.integration.spine.agents import AgentProcess
from tests.integration.spine.fleet import HISTORY_TOPIC, Fleet
from tests.integration.waiting import eventually

_KEY_PASSWORD = "correct-horse-battery-staple"
_OTHER_PASSWORD = "tr0ub4dor-and-three"


@pytest.fixture
def guarded(fleet: Fleet, tmp_path: Path) -> Iterator[AgentProcess]:
    """Agent 1 with an encrypted key, its secrets in files; it logs all it can."""
    agent = fleet.agents[1]
    agent.stop()
    kafka = dict(agent.settings["kafka"])
    key = serialization.load_pem_private_key(Path(kafka["ssl.key.location"]).read_bytes(), None)
    encrypted = tmp_path / "agent.key"
    encrypted.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(_KEY_PASSWORD.encode()),
        )
    )
    secrets = {}
    for name, value in (("ssl.key.password", _KEY_PASSWORD), ("sasl.password", _OTHER_PASSWORD)):
        secret = tmp_path / name
        secret.touch(mode=0o600)
        secret.write_text(value + "\n")
        secrets[name] = str(secret)
    agent.write_config(
        kafka={**kafka, "ssl.key.location": str(encrypted), "debug": "all"},
        kafka_secrets=secrets,
        log={"level": "DEBUG"},
    )
    yield agent
    agent.stop()
    for key_of_ours in ("kafka_secrets", "log"):
        del agent.settings[key_of_ours]
    agent.write_config(kafka=kafka)


def shown_by(process: psutil.Process) -> dict[str, str]:
    """Return the parts of a process and its children that others see; some live for a moment only."""
    seen = {f"arguments of {process.pid}": " ".join(process.cmdline())}
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            seen[f"arguments of {child.pid}"] = " ".join(child.cmdline())
            seen[f"environment of {child.pid}"] = "\n".join(child.environ().values())
    return seen


def test_no_secret_is_told_counted_passed_or_written(fleet: Fleet, guarded: AgentProcess) -> None:
    mark = guarded.journal_mark()
    guarded.start()
    fleet.await_enforced("OPEN")
    fleet.fill(1, headroom=0.5)
    fleet.await_enforced("THROTTLE")
    seen = shown_by(psutil.Process(guarded.process.pid))
    seen["metrics"] = guarded.metrics_text()
    for command in (("config", "show"), ("config", "show", "--json"), ("status", "--json"), ("explain",)):
        done = guarded.cli(*command)
        seen[" ".join(command)] = done.stdout + done.stderr
    seen |= guarded.files()
    assert str(guarded.state_dir / "state.json") in seen
    for topic in (None, HISTORY_TOPIC):
        records = fleet.records() if topic is None else fleet.records(topic)
        seen[f"records of {topic}"] = "".join(str((m.key(), m.value(), m.headers())) for m in records)

    # A wrong password is an error that libraries like to quote from.
    guarded.stop()
    Path(guarded.settings["kafka_secrets"]["ssl.key.password"]).write_text(_KEY_PASSWORD + "!")
    guarded.start()
    eventually(
        lambda: [s for level, s in guarded.journal(mark) if level in ("WARNING", "ERROR") and "key" in s],
        "it says that it can't use the key",
    )
    seen["journal"] = guarded.log_path.read_bytes()[mark:].decode("utf-8", "replace")
    for where, text in seen.items():
        assert _KEY_PASSWORD not in text, where
        assert _OTHER_PASSWORD not in text, where
    assert len(seen["journal"]) > 1000
    assert "[redacted]" in seen["config show"]
