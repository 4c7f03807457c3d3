"""Works on the history of a kquota cluster, on Spark."""
