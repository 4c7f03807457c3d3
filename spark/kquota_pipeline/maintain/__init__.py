"""Keeping the tables in order: closed days without duplicates, the state of each tick, few files, an end of
keeping.

`days` finds the days that have changed since they were last closed, `closing` closes a day, `ticks` derives
the state of each tick, `upkeep` runs them all.
"""
