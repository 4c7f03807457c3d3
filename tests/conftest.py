"""For all tests."""

from __future__ import annotations

from hypothesis import settings

# On a busy machine an example takes as long as it takes; pytest's own time-out ends what hangs.
settings.register_profile("without a deadline", settings(), deadline=None)
settings.load_profile("without a deadline")
