"""Real Kafka to try kquota on: a cluster on loopback, hosts with a systemd of their own, the demonstration.

Tests, measurements and `make demo` use it. Nothing installs it on a broker.
"""
