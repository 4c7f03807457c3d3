"""The cost of the pipeline, compared with DuckDB on the same work in the same run: ``make bench-spark``."""
