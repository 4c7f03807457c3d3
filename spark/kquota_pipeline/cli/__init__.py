"""What people type: ``kquota-pipeline``."""
