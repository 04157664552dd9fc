"""Tests of ``wirelessfl.simulation``."""
