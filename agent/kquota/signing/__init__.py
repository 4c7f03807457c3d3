"""Signing: keys and certificates of signed records. Only an agent that signs or verifies imports it."""
