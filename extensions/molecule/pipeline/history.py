"""Six days of a cluster of three brokers, as lines `key<TAB>record`, up to now: history.py FOLDER.

Writes FOLDER/history.txt, and FOLDER/history.json with what the tables must hold after it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kquota.policy.timestamps import format_utc

SAMPLES = Path(__file__).resolve().parents[3] / "schemas/samples/history/valid"
BROKERS = (1, 2, 3)
MOUNTS = ("/data/1", "/data/2")
DAYS, STEP = 6, timedelta(minutes=15)
STEPS = int(timedelta(days=DAYS) / STEP)
CAPACITY_BYTES = 10**12
# Records of the first day that agents have sent twice, and values that are no record at all.
SENT_TWICE, MALFORMED = 40, 3


def sample(name: str) -> dict[str, Any]:
    """Return a golden sample."""
    document: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))
    return document


def volume(template: dict[str, Any], broker: int, mount: str, step: int) -> dict[str, Any]:
    """Return a volume that retention empties four times a day; the first of broker 1 fills besides."""
    tooth = 0.06 * (step % 24) / 24
    filling = 0.4 * step / STEPS if (broker, mount) == (BROKERS[0], MOUNTS[0]) else 0.0
    plain = {key: value for key, value in template.items() if key not in {"HardLimit", "Latched"}}
    return {
        **plain,
        "VolumeName": f"/dev/sd{'bc'[MOUNTS.index(mount)]}1",
        "VolumeId": f"{broker}-{mount}",
        "MountPoint": mount,
        "LogDirs": [mount],
        "Capacity": CAPACITY_BYTES,
        "Consumed": int(CAPACITY_BYTES * (0.3 + tooth + filling)),
    }


def records(begin: datetime) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (broker, record), in the order in which agents would have sent them."""
    usage, decision, clients = sample("usage"), sample("decision-sample"), sample("clients")
    template = usage["Body"]["Volumes"][0]
    for step in range(STEPS):
        at = format_utc(begin + step * STEP)
        for broker in BROKERS:
            envelope = {"BrokerId": broker, "Sequence": step, "At": at}
            volumes = [volume(template, broker, mount, step) for mount in MOUNTS]
            yield (
                broker,
                {**usage, **envelope, "Body": {**usage["Body"], "SnapshotAt": at, "Volumes": volumes}},
            )
            body = {**decision["Body"], "State": "OPEN", "Factor": 1.0, "Reasons": [], "Undetermined": []}
            yield broker, {**decision, **envelope, "Body": body}
            body = {**deepcopy(clients["Body"]), "WindowSeconds": STEP.total_seconds()}
            yield broker, {**clients, **envelope, "Body": body}


def main(folder: Path) -> None:
    """Write both files."""
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    made = list(records(now - timedelta(days=DAYS)))
    lines = [f"{broker}\t{json.dumps(record, separators=(',', ':'))}" for broker, record in made]
    lines[SENT_TWICE:SENT_TWICE] = lines[:SENT_TWICE]
    lines += ["1\t{" for _ in range(MALFORMED)]
    kinds = Counter(record["Kind"] for _, record in made)
    rows = {
        "usage": kinds["usage"] * len(MOUNTS),
        "decisions": kinds["decision"],
        "clients": kinds["clients"] * len(sample("clients")["Body"]["Clients"]),
        "quarantine": MALFORMED,
    }
    folder.joinpath("history.txt").write_text("\n".join(lines) + "\n", "utf-8")
    folder.joinpath("history.json").write_text(json.dumps({"records": len(lines), "rows": rows}), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
