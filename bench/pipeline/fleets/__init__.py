"""Fleets that forecasts are judged on: a recorded broker, and simulated clusters. None is tuned on them."""
