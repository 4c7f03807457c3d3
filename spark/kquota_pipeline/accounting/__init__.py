"""Who fills the disks: bytes and throttle time by client, group and topic, and quotas that follow from
them.
"""
