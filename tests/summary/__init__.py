"""Tests of ``wirelessfl.summary``."""
