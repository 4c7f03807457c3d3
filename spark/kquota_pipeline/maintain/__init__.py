"""Keeping the tables in order: closed days without duplicates, derived tables, few files, an end of keeping.

`days` finds the days that have changed since they were last closed, `closing` closes a day, `ticks` derives
the state of each tick, `hours` those of each volume, and `upkeep` runs them all.
"""
