"""File systems that the history knows under several names of one broker: a latch follows them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kquota_pipeline.backtest.scene import NONE, Codes


class SharedIds:
    """The ids of volumes that several columns of a broker have, at the same time or in turn."""

    def __init__(self, ids: Codes, present: NDArray[np.bool_], broker: NDArray[np.int64]) -> None:
        self._ids, self._present = ids, present
        columns: dict[tuple[int, int], list[int]] = {}
        for column in range(ids.shape[1]):
            for code in np.unique(ids[present[:, column], column]):
                if code != NONE:
                    columns.setdefault((int(broker[column]), int(code)), []).append(column)
        self._columns = [(code, shared) for (_, code), shared in columns.items() if len(shared) > 1]

    def latched(
        self, tick: int, published: NDArray[np.int64], latched: NDArray[np.bool_], pairs: Codes
    ) -> list[tuple[int, Codes]]:
        """Return the volumes of a tick that another column was latched for, with the limits of its latch
        under each policy; -2 where it was not latched.

        `published` are the ids that the columns last had, `latched` and `pairs` their latches and limits.
        """
        return list(self._latched(tick, published, latched, pairs)) if self._columns else []

    def _latched(
        self, tick: int, published: NDArray[np.int64], latched: NDArray[np.bool_], pairs: Codes
    ) -> Iterator[tuple[int, Codes]]:
        for code, shared in self._columns:
            before = [column for column in shared if published[column] == code and latched[column].any()]
            for column in shared:
                if self._present[tick, column] and self._ids[tick, column] == code:
                    for other in before:
                        if other != column:
                            yield column, np.where(latched[other], pairs[other], -2)
