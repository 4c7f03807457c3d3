"""Apply: what the plug-in inside the broker says it does with the decision."""
