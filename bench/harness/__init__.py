"""The common part of all benches: measurements, results on disk, claims, a page writer, a command line."""
