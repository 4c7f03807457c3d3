"""The agent as a daemon: one cycle observes, publishes, folds, decides, writes, reads the applied state."""
