"""The manual pages, made from the text of --help and from the commented example of agent.yml."""
