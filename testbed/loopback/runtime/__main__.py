"""Fetch a version of Kafka, and print the folder with its jars: python -m testbed.loopback.runtime 4.0.2."""

import sys

from testbed.loopback.runtime import ensure_kafka_runtime

print(ensure_kafka_runtime(sys.argv[1], report=lambda text: print(text, file=sys.stderr)).jars)
