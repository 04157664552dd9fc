"""Tests of the papers whose experiments are re-run."""
