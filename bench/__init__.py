"""Measures how producers are held, on real brokers side by side in one run: `make bench`."""
