"""Numbers of single runs that claims of the zCDP paper about curves are judged by, paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch

import wirelessfl as wfl
from publications.gradients import perceptron, training_samples
from publications.studies import MeasuredNumber
from wirelessfl.scenario import Scenario

WINDOW = 8
"""Rounds of a mean: in so many turns of 10 devices each of the 16 has 5."""

AROUND_THE_TURN, LAST = (37, 44), (93, 100)
"""First and last of the rounds that are compared: those after which the paper sees the loss rise, and its last ones.

They follow from the paper's words; chosen by our curve, as around its minimum, they would favour a rise.
"""

LOSS_RISE, FIRST_DROP = "loss_rise", "first_drop"


def loss_rise(scenario: Scenario, trace: Path) -> float:
    """How much the training loss rises from the turn that the paper sees to the last rounds.

    Args:
        scenario: Of the run; one with fewer rounds than `LAST` has no such number.
        trace: Of the run.
    """
    with wfl.open_trace(trace) as rounds:
        losses = rounds["train_loss"].to_numpy()
    if len(losses) < LAST[1]:
        return math.nan
    turn, end = (float(losses[first - 1 : last].mean()) for first, last in (AROUND_THE_TURN, LAST))
    return end - turn


def first_drop(scenario: Scenario, trace: Path) -> float:
    """The test accuracy of the network before round 1, less that after it.

    Args:
        scenario: Of the run, whose model is a multilayer perceptron.
        trace: Of the run; one that holds no models has no such number.
    """
    with wfl.open_trace(trace) as rounds:
        after = float(rounds["test_accuracy"][0])
    if scenario.trace.models == "none":
        return math.nan
    first = torch.from_numpy(wfl.read_group(trace, "model")["initial"].to_numpy())
    test = wfl.load_population(scenario).test
    labels = perceptron(scenario, training_samples(scenario)).logits(first, test.inputs).argmax(dim=1)
    return float((labels == test.targets).double().mean()) - after


MEASURED: Mapping[str, Mapping[str, MeasuredNumber]] = {
    "logistic": {LOSS_RISE: loss_rise},
    "network": {LOSS_RISE: loss_rise, FIRST_DROP: first_drop},
}
"""Of the studies of convergence, by kind of model."""
