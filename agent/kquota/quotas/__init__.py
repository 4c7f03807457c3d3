"""Quotas that the plug-in divides: leaders of partitions, and thresholds of topics."""
