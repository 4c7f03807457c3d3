"""A cluster under load for an hour: limits crossed and faults injected by lot, every record accounted for."""
