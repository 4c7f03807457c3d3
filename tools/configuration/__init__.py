"""The page of all configuration keys, made from the settings model and the commented example file."""
