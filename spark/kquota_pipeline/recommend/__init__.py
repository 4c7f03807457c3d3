"""Which limits and quotas to set. Nothing here sets any: what comes out is a file and a list of commands."""
