"""Limits and quotas to set. Nothing here sets any: the result is a file and a list of commands."""
