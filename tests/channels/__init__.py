"""Tests of ``wirelessfl.channels``."""
