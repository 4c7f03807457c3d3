"""Makes histories of fleets that never were, but could be: deterministic by their seed."""
