"""Tests of the uplinks."""
