"""Tests of the learning core."""
