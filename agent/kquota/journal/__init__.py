"""The journal: what the agent says, once for each change, and the problems it has not got over yet."""
