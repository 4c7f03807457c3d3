"""How things look on a terminal, for the commands and the demo alike."""
