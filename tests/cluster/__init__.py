"""Tests of the training of one run on workers."""
