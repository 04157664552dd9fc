"""Tests of the assembly: from a scenario to objects."""
