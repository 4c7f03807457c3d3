"""The agent as a daemon: one cycle observes, publishes, folds, decides, writes, and sees what was applied."""
