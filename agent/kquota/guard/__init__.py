"""The guard: the loop that observes, publishes, folds, decides and writes, and reads what was applied."""
