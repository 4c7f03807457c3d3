"""Recording the history of a real broker whose weeks pass within minutes."""
