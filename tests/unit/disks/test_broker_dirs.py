"""The log dirs that are watched, compared with those that the broker runs with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kquota.disks.broker_dirs import Place, with_broker_dirs, with_unformatted
from kquota.disks.observation import Observation, with_offline
from tests.unit.disks.test_volumes import look, resolved

NAMES = ("/data/1/k", "/data/2/k")
LOOKS = {
    NAMES[0]: replace(look(NAMES[0], 11), device=1, inode=10),
    NAMES[1]: replace(look(NAMES[1], 12), device=2, inode=20),
}
HUNG = {**LOOKS, NAMES[1]: replace(LOOKS[NAMES[1]], failed_step="open", failed_errno=5)}
HERE = resolved(",".join(NAMES), *LOOKS.values()).observation


def statuses(seen: Observation) -> list[str]:
    return [str(volume.status) for volume in seen.volumes]


@pytest.mark.parametrize(
    "used",
    [
        {},
        {NAMES[0]: (1, 10), NAMES[1]: (2, 20)},
        {NAMES[0]: (1, 10)},
        {NAMES[0]: None, f"{NAMES[1]}/": None},
        {"/in/a/container": (2, 20)},
    ],
    ids=["not said", "the same", "one more is watched", "by path alone", "another path to the same"],
)
def test_directories_that_are_watched_are_judged(used: dict[str, Place | None]) -> None:
    assert statuses(with_broker_dirs(HERE, LOOKS, used)) == ["ok", "ok"]


def test_a_directory_that_is_not_watched_fails_every_volume_with_a_sentence() -> None:
    seen = with_broker_dirs(HERE, LOOKS, {NAMES[0]: (1, 10), "/data/3/k": (3, 30), "/data/4/k": None})
    assert statuses(seen) == ["failed", "failed"]
    assert str(seen.volumes[0].reason).startswith(
        "the broker uses /data/3/k, /data/4/k, not among the log dirs that the agent watches:"
        " broker.server_properties must name the file"
    )


def test_the_same_path_in_another_mount_namespace_fails_its_volume() -> None:
    seen = with_broker_dirs(HERE, LOOKS, {NAMES[0]: (9, 10), NAMES[1]: (2, 20)})
    assert statuses(seen) == ["failed", "ok"]
    assert str(seen.volumes[0].reason).startswith("/data/1/k: the broker has another directory at this path")
    assert statuses(with_offline(seen, [NAMES[0]])) == ["offline", "ok"]


def test_a_directory_that_can_not_be_looked_at_is_compared_by_its_path() -> None:
    seen = with_broker_dirs(HERE, HUNG, {NAMES[1]: (2, 20), NAMES[0]: (1, 10)})
    assert statuses(seen) == ["ok", "ok"], "its failure is the look's own"


@pytest.mark.parametrize(
    ("formatted", "status"),
    [((False, False), "failed"), ((False, True), "ok"), ((False, None), "ok"), ((None, None), "ok")],
)
def test_a_broker_that_is_up_has_formatted_a_directory_of_its_own(
    formatted: tuple[bool | None, ...], status: str
) -> None:
    looks = {name: replace(LOOKS[name], formatted=one) for name, one in zip(NAMES, formatted, strict=True)}
    seen = with_unformatted(HERE, looks)
    assert statuses(seen) == [status, status]
    if status == "failed":
        assert str(seen.volumes[0].reason).startswith("the broker is up and no log dir")
    assert with_unformatted(HERE, {}) == HERE
