"""Faults: runs the tests that inject them, and writes the page of failure modes."""
