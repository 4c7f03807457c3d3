"""``python -m tools.pictures``: the demonstration and the status, photographed in the middle of a pause."""

from __future__ import annotations

import io
import time
from pathlib import Path

from rich.console import Console

from kquota.cli.cluster_look import ClusterLook
from kquota.cli.status import document_of
from kquota.display.status_view import status_view
from kquota.policy.decision import State
from kquota.settings import load
from testbed.demo.loopback_stage import LoopbackStage
from testbed.demo.plan import Plan
from testbed.demo.scenario import Scenario
from testbed.demo.screen import Screen
from testbed.demo.sight import Lookout, Sight
from testbed.demo.tally import Tally
from testbed.loopback.callback_jar import find_callback_jar
from testbed.loopback.runtime import ensure_kafka_runtime
from tools.pictures.svg import save_svg

_COLUMNS = 100
_LINES = 34
_INTO_THE_PAUSE_SECONDS = 8.0
_WIDTHS = {"status.svg": 110, "status-narrow.svg": 60}


class Photographer(Screen):
    """The demonstration's screen, with a camera that goes off once, some seconds into the pause."""

    def __init__(self, title: str, stage: LoopbackStage, folder: Path) -> None:
        console = Console(file=io.StringIO(), width=_COLUMNS, height=_LINES)
        super().__init__(console, title, stage.plan.topics, protected=True)
        self._stage = stage
        self._folder = folder
        self._paused_at: float | None = None
        self.taken = False

    def show(self, sight: Sight) -> None:
        """Show it as ever, and take the pictures when it is time."""
        super().show(sight)
        picture = self.picture(sight, _COLUMNS)  # each time: the meters draw their course by it
        decision = sight.worst_decision
        by_a_volume = decision is not None and any(reason.volume for reason in decision.reasons)
        if not (by_a_volume and sight.all_enforce(State.PAUSE)):
            return
        if self._paused_at is None:
            self._paused_at = time.monotonic()
        if not self.taken and time.monotonic() - self._paused_at > _INTO_THE_PAUSE_SECONDS:
            self.taken = True
            save_svg(picture, self._folder / "demo.svg", columns=_COLUMNS, title="make demo-local")
            self._take_status()

    def _take_status(self) -> None:
        configuration = self._stage.cluster.nodes[1].layout.directory / "agent.yml"
        settings = load(configuration, {})
        with ClusterLook(settings) as look:
            look.wait(15.0)
            document = document_of(look, settings, 1)
        for name, columns in _WIDTHS.items():
            save_svg(
                status_view(document, columns), self._folder / name, columns=columns, title="kquota status"
            )


def photograph_demo(folder: Path) -> None:
    """Play the demonstration, and write demo.svg, status.svg and status-narrow.svg.

    Raises:
        RuntimeError: it came to no pause.
    """
    plan = Plan(separate_metadata=False)
    runtime = ensure_kafka_runtime(report=print)
    title = f"kquota demo: Kafka {runtime.version}, three brokers, protected"
    tally = Tally()
    with (
        LoopbackStage(plan, runtime, callback_jar=find_callback_jar(), report=print) as stage,
        (camera := Photographer(title, stage, folder)),
        Lookout(stage.cluster.brokers, plan.limits, stage.files, tally.notice) as lookout,
        Scenario(stage, lookout, tally, camera) as scenario,
    ):
        scenario.play()
    if not camera.taken:
        raise RuntimeError("the demonstration came to no pause: there is nothing to photograph")


if __name__ == "__main__":
    photograph_demo(Path(__file__).resolve().parents[2] / "docs/img")
