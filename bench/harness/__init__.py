"""What all benches have in common: measurements, results on disk, claims, a page writer, a command line."""
