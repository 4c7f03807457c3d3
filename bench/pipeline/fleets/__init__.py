"""Fleets that forecasts are tuned on (segments, shapes, rates), and others that they are judged on (changes,
recorded).
"""
