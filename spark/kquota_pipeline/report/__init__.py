"""The report: one page that holds everything it shows, and the same figures as JSON."""
