"""Trust: keys, certificates and authorities of signed records, for agents that sign or verify."""
