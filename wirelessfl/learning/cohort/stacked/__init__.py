"""Closed-form forward and backward passes of many clients' models at once."""

from wirelessfl.learning.cohort.stacked.activation_space import ActivationSpace
from wirelessfl.learning.cohort.stacked.compilation import compile_program
from wirelessfl.learning.cohort.stacked.program import Program, StackedModels
from wirelessfl.learning.cohort.stacked.sample_space import SampleSpace

__all__ = ["ActivationSpace", "Program", "SampleSpace", "StackedModels", "compile_program"]
