"""Retention: when bytes leave, what frees a full volume, cordons, and growth while producers wait."""
