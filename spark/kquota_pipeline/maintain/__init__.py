"""Keeping the tables in order: closed days without duplicates, derived tables, few files, an end of keeping.

`days` finds the days that have changed since they were last closed, `closing` closes a day, `derived` derives
tables day by day (`hours`, and those of `accounting.days`), and `upkeep` runs them all.
"""
