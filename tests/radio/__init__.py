"""Tests of the radio core."""
