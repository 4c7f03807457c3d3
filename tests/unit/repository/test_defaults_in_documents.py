"""The defaults in docs/operation.md and docs/sizing.md are those of the code, and the example adds up."""

from __future__ import annotations

import math
import re

import pytest

from kquota.settings.model import Settings
from tests.unit.repository.tree import REPOSITORY

OPERATION = (REPOSITORY / "docs/operation.md").read_text("utf-8")
SIZING = (REPOSITORY / "docs/sizing.md").read_text("utf-8")
KQUOTA_CONFIG = REPOSITORY / "callback/src/main/java/org/kquota/config/KquotaConfig.java"
BROKER_PROPERTIES = KQUOTA_CONFIG.read_text("utf-8")


def default(key: str) -> object:
    return Settings.model_fields[key].get_default(call_default_factory=True)


def broker_default(constant: str) -> int:
    found = re.search(rf"define\({constant}, Type\.\w+, ([0-9_]+)L?,", BROKER_PROPERTIES)
    assert found, constant
    return int(found[1].replace("_", ""))


def test_the_table_of_defaults_is_that_of_the_settings():
    table = dict(re.findall(r"^\| `([\w.]+)` \| (.+) \|$", OPERATION, re.MULTILINE))
    limits = default("limits")
    assert table == {
        "lease_seconds": f"{default('lease_seconds'):g}",
        "staleness_seconds": f"{default('staleness_seconds'):g}",
        "decision_file": str(default("decision_file")),
        "applied_file": str(default("applied_file")),
        "metrics.listen": str(default("metrics").listen),
        "limits.soft": f"{limits.soft.level} % free",
        "limits.hard": f"{limits.hard.level} % free",
        "limits.inodes.soft_free_percent": f"{limits.inodes.soft_free_percent} %",
        "limits.inodes.hard_free_percent": f"{limits.inodes.hard_free_percent} %",
    }


def test_the_default_limits_are_those_of_the_settings():
    limits = default("limits")
    assert {limits.hard.type, limits.soft.type} == {"MinFreePercentage"}
    words = " ".join(SIZING.split())
    assert f"hard at {limits.hard.level} % free and soft at {limits.soft.level} % free" in words
    assert f"a reserve of {limits.hard.level * 10} GB" in SIZING
    assert f"a zone of {(limits.soft.level - limits.hard.level) * 10} GB" in SIZING


def test_the_example_of_sizing_adds_up():
    window, reaction, mute, hour = 11, 2, broker_default("MUTE_MAX_MS") / 1000, 3600
    share = 3 / 9 * 2
    rate = share * 300e6
    arrival = max(broker_default("ARRIVAL_MIN_BYTES"), 100 * 100e3)
    burst = rate * (reaction + window / 2)
    requests = share * 3 * 100 * 100e3
    leak = arrival * (15 + 2 * hour / mute)
    leak_of_all = share * 3 * leak
    for line in (
        f"a       = 3 / 9 · 2                       = {share:.2f}",
        f"r       = 0.67 · 300 MB/s                 = {rate / 1e6:.0f} MB/s",
        f"burst   = 200 MB/s · (2 + 5.5) s          = {burst / 1e9:.1f} GB",
        f"request = 0.67 · 3 · 100 · 100 kB         = {requests / 1e9:.2f} GB",
        f"leak    = 10 MB · (15 + 2 · 3600 / {mute:.0f})    = {leak / 1e9:.2f} GB per broker",
        f"        → 0.67 · 3 · 7.35 GB              = {leak_of_all / 1e9:.1f} GB on the fullest volume",
        f"reserve ≥ 1.5 + 0.02 + 14.7               = {(burst + requests + leak_of_all) / 1e9:.1f} GB",
        f"zone    ≥ e · 200 MB/s · (2 + 5.5 + 1) s  = {math.e * rate * 8.5 / 1e9:.1f} GB",
        f"zone    = 200 MB/s · 600 s                = {rate * 600 / 1e9:.0f} GB",
    ):
        assert line in SIZING
    assert 3 < (50e9 - burst - requests) / leak_of_all < 4  # "more than three hours"
    assert 100e9 / rate == pytest.approx(500)  # "to 37 % in 500 s"
