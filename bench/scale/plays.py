"""Time of plays: values, the model for a fleet of another size, and claims. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness.claims import Claim
from bench.harness.results import Figures, of

HOSTS = 500
"""Of the fleet that the model is asked about."""
CORES = 8
"""Of its control host; an assumption."""
AGAIN = "rollout, again"


@dataclass(frozen=True, slots=True)
class PlayCost:
    """One run of a play on throw-away hosts, by plain `ansible-playbook` with 20 forks."""

    play: str
    hosts: int
    kafka: bool
    """Whether the hosts have brokers; without, only parts that change all hosts at the same time can run."""
    tasks: float
    """Tasks of a host, skipped ones included; the mean."""
    seconds: float
    control_core_seconds: float
    """Of the control host's processors: Ansible, its workers and their connections."""
    restarts: int
    restart_seconds: float
    """Of `seconds`: the part that changes one node after the other."""

    @property
    def task_core_seconds(self) -> float:
        """Of the control host, for a task on a host."""
        return self.control_core_seconds / self.hosts / self.tasks


def task_core_seconds(costs: list[PlayCost]) -> float:
    """The constant of the model: a task on a host, where there are many hosts; the most of all runs there."""
    most = max(cost.hosts for cost in costs)
    return max(cost.task_core_seconds for cost in costs if cost.hosts == most)


def model_seconds(
    cost: PlayCost, task_seconds: float, *, hosts: int = HOSTS, cores: int = CORES, batch: int = 1
) -> float:
    """Seconds that a play takes on `hosts`, from its run `cost` on few.

    Three parts: what it took on few hosts except the restarts (the length of the chain of tasks, and what
    is done once); the control host's work for all tasks of all hosts; and the restarts in turn, of as
    large a share of the nodes as in the run.
    """
    chain = cost.seconds - cost.restart_seconds
    work = hosts * cost.tasks * task_seconds / cores
    restarts = hosts * cost.restarts / cost.hosts / batch
    return chain + work + (restarts * cost.restart_seconds / cost.restarts if cost.restarts else 0.0)


def play_claims(figures: Figures) -> Iterator[Claim]:
    """The aim for a rollout that has nothing left to do."""
    costs = of(PlayCost, figures)
    again = [cost for cost in costs if cost.kafka and cost.play == AGAIN]
    if again:
        minutes = model_seconds(again[0], task_core_seconds(costs)) / 60
        yield Claim(
            f"a finished rollout over {HOSTS} hosts again takes at most 10 minutes, by the model",
            minutes,
            "<=",
            10,
            f"{minutes:.1f} minutes with {CORES} cores of the control host",
            cause="the control host starts a process for each task on each host",
        )
