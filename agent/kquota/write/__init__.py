"""Write: what the agent leaves on the local file system, replaced atomically or not at all."""
