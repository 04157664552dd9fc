"""Tests of the clipping rules."""
