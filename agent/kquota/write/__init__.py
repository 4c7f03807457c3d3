"""Write: the agent's files on the local file system, replaced atomically or not at all."""
