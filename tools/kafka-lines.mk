# The newest version of each line of Kafka that is supported, and those whose own tests of quotas Kafka has published. `make test` and
# `make test-long` run on them; tests/unit/repository/test_kafka_lines.py compares the pom.xml files, the preflight and docs/support.md with them.
KAFKA_LINES := 4.0.2 4.1.2 4.2.2 4.3.1 4.4.0
KAFKAS_OWN_TESTS := 4.1.2 4.2.1 4.3.1
