"""Disks: the volumes behind a broker's log dirs, found and sampled without ever waiting for a disk."""
