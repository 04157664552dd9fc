"""Tests of the summary room."""
