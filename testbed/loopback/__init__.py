"""A real Kafka cluster on loopback, on file systems of its own; nothing of it outlives its owner."""
