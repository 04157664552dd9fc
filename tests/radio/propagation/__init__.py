"""Tests of links over simulated time."""
