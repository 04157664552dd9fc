"""Tests of differentially private local training."""
