"""Analyses of finished runs: audits, replays and reports."""
