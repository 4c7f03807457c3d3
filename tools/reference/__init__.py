"""Reference pages that are made from the code: properties, metrics, commands, roles, messages, files."""
