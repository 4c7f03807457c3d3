"""The last good configuration reaches its file, though the disk takes it only later."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kquota.daemon import good_configuration
from kquota.daemon.good_configuration import GoodConfiguration
from kquota.daemon.metrics import AgentMetrics
from kquota.settings.last_good import FILE_NAME, Unremembered
from tests.integration.waiting import eventually


class Disk:
    """Answers as `ConfigurationFile.remember` does: the configuration is in its file, or it is returned."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / FILE_NAME
        self.in_force = b"first"

    def remember(self) -> Unremembered | None:
        unremembered = Unremembered(self.file, self.in_force, "No such file or directory")
        if not self.file.parent.exists():
            return unremembered
        unremembered.write()
        return None


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(good_configuration, "RETRY_SECONDS", 0.01)


def failures(metrics: AgentMetrics) -> float:
    return metrics.registry.get_sample_value("kquota_file_write_errors_total", {"file": FILE_NAME}) or 0


@pytest.mark.accepts("F57")
def test_a_configuration_that_could_not_be_written_is_tried_again_until_it_is(tmp_path: Path) -> None:
    disk, metrics = Disk(tmp_path / "state"), AgentMetrics("1")
    good = GoodConfiguration(disk.remember, metrics)
    good.remember()
    sentence = f"the good configuration can't be remembered in {disk.file}: No such file or directory"
    assert [(entry.level, entry.sentence) for entry in good.entries()] == [(logging.WARNING, sentence)]
    eventually(lambda: failures(metrics) > 2, "each try is counted")
    assert good.entries() == [], "and none of them logged"
    disk.file.parent.mkdir()
    (over,) = eventually(good.entries, "the end is logged")
    assert over.sentence == f"over: {sentence}"
    assert disk.file.read_bytes() == b"first"


@pytest.mark.accepts("F57")
def test_an_earlier_configuration_does_not_take_the_place_of_a_later_one(tmp_path: Path) -> None:
    disk, metrics = Disk(tmp_path / "state"), AgentMetrics("1")
    good = GoodConfiguration(disk.remember, metrics)
    good.remember()
    disk.in_force = b"second"
    good.remember()
    assert len(good.entries()) == 2
    disk.file.parent.mkdir()
    eventually(good.entries, "it is written")
    assert disk.file.read_bytes() == b"second"
    disk.in_force = b"third"
    good.remember()
    assert disk.file.read_bytes() == b"third"
    assert good.entries() == []
    good.close()
