"""This machine, as several stages see it: its boot clock, and files of others read with distrust."""
