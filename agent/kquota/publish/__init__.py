"""Publishing: usage snapshots, history records and operators' records."""
