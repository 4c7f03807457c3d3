"""What the pipeline costs, beside DuckDB doing the same work in the same run: ``make bench-spark``."""
