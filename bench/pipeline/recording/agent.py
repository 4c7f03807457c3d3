"""The agent at the pace of a recording: `kquota`, with the times of its expiry buckets as much shorter.

A retention of a week is over in minutes here. With its own buckets the agent would say of all bytes that they
leave within ten minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from bench.pipeline.recording.pace import SCALE
from kquota.cli.main import main
from kquota.core import expiry


def shortened(buckets: Mapping[str, int]) -> dict[str, int]:
    """Return the bounds of buckets, in milliseconds, at the pace of the recording; their names stay."""
    return {name: max(round(bound_ms / SCALE), 1) for name, bound_ms in buckets.items()}


if __name__ == "__main__":
    # In the mapping that all of the agent reads.
    cast(dict[str, int], expiry.BUCKETS).update(shortened(expiry.BUCKETS))
    main()
