"""How likely each volume reaches its limits: what is there and expires, what flows in, and what past
forecasts were wrong by. All but `job`, `accuracy`, `series` and `looks` is pure: arrays in, arrays out.
"""
