"""Building a release."""
