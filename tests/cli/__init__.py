"""Tests of ``wirelessfl.cli``."""
