"""Tests, in the folders of the package; `tests.statistics` is the one helper for statistical acceptance."""
