"""Applied: the report of the plug-in inside the broker about what it does with the decision."""
