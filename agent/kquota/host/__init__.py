"""This machine: its boot clock, files of others read with distrust, and files replaced atomically."""
