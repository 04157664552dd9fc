"""Tests of the papers that are put to the test."""
