"""Keeping the tables in order: closed days without duplicates, the state of each tick, few files, an end of
keeping.

`days` finds what has changed since it was last put in order, `closing` puts a day in order, `ticks` derives
the state of each tick, `upkeep` runs them all.
"""
