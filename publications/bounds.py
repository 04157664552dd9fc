"""The convergence theorems of two papers beside runs of the simulator, on softmax regression with known constants.

The clients' data are those that the run's own population hands out, and gradients are taken at the models that its
trace holds; nothing is simulated here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import wirelessfl as wfl
from publications.convergence import (
    Heterogeneity,
    LocalSgd,
    Smoothness,
    SoftmaxRegression,
    UpcycledRounds,
    upcycled_movement,
)
from wirelessfl.scenario import Scenario

Array = NDArray[np.float64]


def problem_of(scenario: Scenario) -> SoftmaxRegression:
    """The training objective of a scenario's clients."""
    population = wfl.load_population(scenario)
    count = len(population.sizes)
    shards = population.shards(np.arange(count, dtype=np.int64))
    rows = np.concatenate([shards.index[at, :size].numpy() for at, size in enumerate(population.sizes)])
    return SoftmaxRegression(
        inputs=shards.inputs.numpy()[rows].reshape(len(rows), -1).astype(np.float64),
        targets=shards.targets.numpy()[rows],
        device=np.repeat(np.arange(count), population.sizes),
        classes=population.num_classes,
    )


def models_of(trace: Path) -> Array:
    """Models (T + 1, d) of a trace that holds every model, from the zero that it started with."""
    weights = wfl.read_group(trace, "model")["weights"].to_numpy().astype(np.float64)
    return np.concatenate([np.zeros((1, weights.shape[1])), weights])


def squared_gradients(problem: SoftmaxRegression, models: Array) -> Array:
    """‖∇f‖² at each of (T, d) models."""
    gradients = [problem.gradient(problem.matrix(model)) for model in models]
    return np.array([float((gradient**2).sum()) for gradient in gradients])


def local_sgd_curve(scenario: Scenario, trace: Path) -> Array:
    """(T,) mean of ‖∇f‖² over the models that the devices have received so far, θ^0 … θ^{T − 1}."""
    models = models_of(trace)
    squared = squared_gradients(problem_of(scenario), models[:-1])
    return np.asarray(np.cumsum(squared) / np.arange(1, len(squared) + 1))


def upcycled_curve(scenario: Scenario, trace: Path) -> Array:
    """(M,) ‖∇f(w̄^{2m−1})‖², before the server repeats its step: w̄^{2m} = w̄^{2m−1} + a (w̄^{2m−1} − w̄^{2m−2}) undone."""
    models = models_of(trace)
    again = repeated(scenario)
    return squared_gradients(problem_of(scenario), (models[1:] + again * models[:-1]) / (1 + again))


def repeated(scenario: Scenario) -> float:
    """μ/(μ + λ) of a scenario with one λ; 0 for FedProx."""
    algorithm = scenario.training.algorithm
    lam = getattr(algorithm, "lam", np.inf)
    return float(getattr(algorithm, "mu", 0.0) / (getattr(algorithm, "mu", 0.0) + float(lam)))


def local_sgd_setting(scenario: Scenario) -> tuple[LocalSgd, Smoothness]:
    """What Theorem 2 of the zCDP paper asks for, from full batches of devices of one size."""
    problem = problem_of(scenario)
    training, clients = scenario.training, scenario.clients
    run = LocalSgd(
        step=training.optimizer.lr,
        local_steps=int(training.steps or 1),
        devices=clients.count,
        devices_per_round=int(getattr(clients.selection, "count", clients.count)),
        batch_size=training.batch_size,
        dimension=problem.dimension,
        noise_std=float(getattr(training.privacy, "noise_std", 0.0)),
    )
    gap = float(np.log(problem.classes)) - problem.minimum()
    return run, Smoothness(problem.smoothness(), gap, heterogeneity=problem.heterogeneity())


def upcycled_setting(scenario: Scenario, noise_std: float) -> tuple[UpcycledRounds, Heterogeneity, float]:
    """What Theorem 5 of the over-the-air paper asks for, of classes that the first axis separates, without back-off.

    Args:
        scenario: With ``rescale: none`` and enough power for s_i = 1.
        noise_std: σ_m of a round, all of it counted as the receiver's: C_5 and C_6 have one and the same form.

    Returns:
        The rounds, the clients, and the gap f(0) − inf f = ln C.
    """
    problem, rounds = problem_of(scenario), scenario.rounds
    mu = float(getattr(scenario.training.algorithm, "mu"))  # noqa: B009
    scaled = np.full((rounds + 1, len(problem.weight)), float(scenario.uplink.clip or 1.0))
    bounds, again = problem.gradient_bounds(), repeated(scenario)
    noise = np.full(rounds + 1, noise_std)
    setting = UpcycledRounds(
        prox_mu=mu,
        lam=np.full(rounds, mu * (1 / again - 1) if again > 0 else np.inf),
        scaled_backoff=scaled,
        jammer_noise_std=np.zeros(rounds + 1),
        receiver_noise_std=noise_std,
        dimension=problem.dimension,
        movement=upcycled_movement(bounds, problem.weight, scaled, mu, noise, problem.dimension),
    )
    clients = Heterogeneity(
        smoothness=problem.smoothness(),
        convexity=mu,
        gradient_bound=float(bounds @ problem.weight),
        dissimilarity=problem.dissimilarity(np.eye(problem.inputs.shape[1] + 1)[0]),
        deviation=problem.deviations(),
        weight=problem.weight,
    )
    return setting, clients, float(np.log(problem.classes))
