"""The clients that fill the disks: bytes and throttle time by client, group and topic, and quotas from
them.
"""
