"""Finished runs: opened, repeated, compared, changed, exported."""
