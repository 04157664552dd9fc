"""Tests of the noise mechanisms."""
