"""Tests of the privacy core."""
