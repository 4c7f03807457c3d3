"""The claims about what agents and plug-ins do together: their reaction, the scope, an agent's cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.figures import AgentCost, Reaction, Scoped, SegmentsCost, megabytes
from bench.harness.claims import Claim, each
from bench.systems import PEER_NAME
from kquota.policy.decision import State

_LATE = (
    "two looks at the disks in 0.2 s find a jump over the limit after 50 ms on average; a message through "
    "Kafka and four wake-ups of processes on two cores follow"
)
_SOONER = "check the disks more often (sample_interval_seconds), for more processor time"
_BUSY = "six brokers, their agents and the producers share two cores"
_COARSE = (
    "a producer that waits sends requests of up to 1 MB: seconds of what a broker with one topic at stake may"
    " take in. The first five seconds do not count here, and what they left unused lands in the others"
)
SMALLER_REQUESTS = "send smaller requests (batch.size, max.request.size)"


def scopes(scoped: list[Scoped]) -> Iterator[Claim]:
    """The scope of the volume; the same producers with the peer are only shown."""
    ours = [one for one in scoped if one.system != PEER_NAME]
    if paused := [one for one in ours if one.state == State.PAUSE]:
        late = max(one.stake_late_bytes for one in paused)
        yield Claim(
            "with the scope of the volume no byte lands on topics at stake after the first 0.5 s of a PAUSE",
            late, "==", 0, f"at most {megabytes(late)} in {len(paused)} pauses", asserted=True,
        )  # fmt: skip
    yield from each(
        "THROTTLE of single topics is within 15% of its target",
        [one for one in ours if one.state == State.THROTTLE],
        lambda one: abs(one.stake_ratio / one.factor - 1), 0.15, "off", str, _COARSE, SMALLER_REQUESTS,
        digits=2,
    )  # fmt: skip
    for mixed, kept in ((False, 0.98), (True, 0.95)):
        some = [one for one in ours if one.mixed is mixed]
        who = "producers that also write to topics at stake" if mixed else "producers to other topics"
        if some:
            worst = min(some, key=lambda one: one.others_ratio)
            enough = sum(one.others_ratio >= kept for one in some)
            yield Claim(
                f"{who} keep at least {kept:.0%} of their rate to others",
                worst.others_ratio, ">=", kept,
                f"{enough} of {len(some)}; worst {worst.others_ratio:.3f} ({worst})", _BUSY,
            )  # fmt: skip
    if ours:
        failed = sum(one.failed_records for one in ours)
        yield Claim(
            "with the scope of the volume no record fails", failed, "==", 0, str(failed), asserted=True
        )


def reactions(seen: list[Reaction]) -> Iterator[Claim]:
    """From a breach until every broker enforces."""
    middles = {entry.system: median(entry.pause_seconds) for entry in seen}
    for entry in seen:
        if entry.system == PEER_NAME:
            continue
        middle, worst = middles[entry.system], max(entry.pause_seconds)
        if PEER_NAME in middles:
            faster = middles[PEER_NAME] / middle
            yield Claim(
                "in the median, all brokers enforce at least three times as soon as with the peer",
                faster, ">=", 3,
                f"{faster:.1f} times: {middle:.2f} s against {middles[PEER_NAME]:.2f} s",
                asserted=True,
            )  # fmt: skip
        in_all = f"s in {len(entry.pause_seconds)} breaches"
        for name, figure, bound in (("median", middle, 0.1), ("worst", worst, 0.3)):
            yield Claim(
                f"reaction: {name} at most {bound:g} s",
                figure, "<=", bound, f"{figure:.3f} {in_all}", _LATE, _SOONER,
            )  # fmt: skip


def agents(costs: list[AgentCost]) -> Iterator[Claim]:
    """An agent in OPEN."""
    if costs:
        memory = max(agent.memory_bytes for agent in costs)
        yield Claim(
            "an agent with its probe process takes at most 60 MiB of memory",
            memory, "<=", 60 * 2**20, f"at most {memory / 2**20:.0f} MiB of {len(costs)} agents",
            "most of it belongs to the interpreter, pydantic-settings and confluent-kafka",
            "read the configuration in a process that ends, and pass on the result",
        )  # fmt: skip
        yield Claim(
            "an agent uses at most 1% of a core in OPEN",
            max(agent.processor_ratio for agent in costs), "<=", 0.01,
            ", ".join(f"{agent.processor_ratio:.1%}" for agent in costs),
            "the probe process checks the disks five to ten times a second, and the connections have threads",
            "check less often while all disks are far from their limits",
        )  # fmt: skip


def looks(costs: list[SegmentsCost]) -> Iterator[Claim]:
    """The look at the segments."""
    for cost in costs:
        whose = f"a look at {cost.segments:,} segments"
        yield Claim(
            f"{whose} takes at most ten minutes", cost.seconds, "<=", 600, f"{cost.seconds:.0f} s",
            "other work on the machine, to which the process gives way",
            "raise segments.files_per_second",
        )  # fmt: skip
        yield Claim(
            f"{whose} uses at most 1% of a core", cost.processor_ratio, "<=", 0.01,
            f"{cost.processor_ratio:.2%}, and {cost.owner_processor_ratio:.2%} to add them up",
            "each file is one system call, and each segment three more to read its time index",
            "lower segments.files_per_second",
        )  # fmt: skip
