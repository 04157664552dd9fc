"""Which parameters of a model belong to one layer."""

from __future__ import annotations

from wirelessfl.learning.flat import FlatModel


def layer_of_parameters(model: FlatModel) -> tuple[int, ...]:
    """(L,) the layer of each parameter in flat order, from 0: weight and bias of one module are one layer."""
    modules = [name.rpartition(".")[0] for name in model.shapes]
    first_seen = {module: layer for layer, module in enumerate(dict.fromkeys(modules))}
    return tuple(first_seen[module] for module in modules)
