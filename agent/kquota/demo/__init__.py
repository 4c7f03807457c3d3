"""A real Kafka cluster on loopback, and the demonstration on it.

The cluster (`cluster`, `node`, `volumes`, `workspace`) serves the tests as well.
"""
