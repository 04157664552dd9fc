"""Tests of the convergence room."""
