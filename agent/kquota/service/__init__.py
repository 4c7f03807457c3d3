"""The service: the process under systemd, which puts the guard and what follows its cycles together."""
