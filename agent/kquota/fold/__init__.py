"""Folding: reading the usage topic, and handing every record over."""
