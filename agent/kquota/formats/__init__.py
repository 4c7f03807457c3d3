"""Formats: how records, files and sentences are written and read, as pure functions of bytes and text."""
