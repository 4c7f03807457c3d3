"""Publishing: the topics and their settings, usage snapshots, history records and operators' records."""
