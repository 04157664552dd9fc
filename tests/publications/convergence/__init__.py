"""Tests of ``publications.convergence``."""
