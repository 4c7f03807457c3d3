"""The demonstration: a disk fills on three brokers, on hosts or on loopback, with kquota or without."""
