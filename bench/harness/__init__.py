"""The common part of all benches: measurements, results on disk, claims, a page writer, a command line.

Times and rates depend on the machine and its load: a bound in seconds that holds on one machine fails on
another one, and one that always holds proves nothing. So a claim that fails the command is a ratio or a zero
within one run. A value in seconds, bytes or per cent is an aim: the page shows by how much it is missed.
"""
