"""kquota keeps the disks of an Apache Kafka cluster from running full because of producers."""

__version__ = "0.1.0"
