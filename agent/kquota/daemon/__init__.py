"""The agent as a daemon: one cycle that observes, publishes, folds, decides, writes and looks at what was applied."""
