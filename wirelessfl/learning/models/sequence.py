"""Models of letters and words: stacked LSTM and transformer, in plain products that batch over clients.

``torch.nn.LSTM`` and ``torch.nn.TransformerEncoderLayer`` compute the same; their kernels are not batched over clients.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from wirelessfl.errors import precondition


class TokenEmbedding(nn.Module):
    """Embedding (..., n, width) of tokens (..., n) that are whole numbers in floating point.

    Args:
        vocabulary: Number of different tokens V.
        width: Of the embedding.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocabulary, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """The rows of the embedding."""
        return functional.embedding(tokens.long(), self.weight)


class LstmLayer(nn.Module):
    """Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate and one bias for each gate.

    The gates are those of ``torch.nn.LSTM``: input, forget, cell and output; its second, redundant bias is left out.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.input_weight = nn.Parameter(torch.empty(4 * hidden, inputs).uniform_(-bound, bound))
        self.hidden_weight = nn.Parameter(torch.empty(4 * hidden, hidden).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(4 * hidden).uniform_(-bound, bound))

    def forward(self, inputs: Tensor) -> Tensor:
        """Hidden states (B, n, hidden) of inputs (B, n, width)."""
        given = functional.linear(inputs, self.input_weight, self.bias)
        hidden = cell = given.new_zeros(len(inputs), self.hidden_weight.shape[1])
        states = []
        for now in given.unbind(dim=1):
            gates = now + functional.linear(hidden, self.hidden_weight)
            admitted, kept, candidate, shown = gates.chunk(4, dim=-1)
            cell = torch.sigmoid(kept) * cell + torch.sigmoid(admitted) * torch.tanh(candidate)
            hidden = torch.sigmoid(shown) * torch.tanh(cell)
            states.append(hidden)
        return torch.stack(states, dim=1)


class LastState(nn.Module):
    """The last of the states (B, n, width)."""

    def forward(self, states: Tensor) -> Tensor:
        """(B, width)."""
        return states[:, -1]


def lstm(
    feature_shape: Sequence[int],
    num_classes: int,
    vocabulary: int,
    embedding: int = 8,
    hidden: int = 256,
    layers: int = 2,
) -> nn.Sequential:
    """The stacked LSTM of LEAF's Shakespeare task: embedding of 8, two layers of 256, the last state to the classes.

    With 80 letters d = 817,872.

    Raises:
        ValueError: if the samples are no sequences.
    """
    _length(feature_shape, "lstm")
    widths = [embedding, *[hidden] * layers]
    stack = [LstmLayer(narrow, wide) for narrow, wide in pairwise(widths)]
    return nn.Sequential(TokenEmbedding(vocabulary, embedding), *stack, LastState(), nn.Linear(hidden, num_classes))


class EncoderLayer(nn.Module):
    """Layer of a transformer's encoder, normalised before each part (Xiong et al. 2020).

    Args:
        width: Of a token.
        heads: Of the attention; they divide the width.
        hidden: Width of the feed-forward part.
    """

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.projection, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, n, width) to the same."""
        tokens = tokens + self.output(self._attended(self.before_attention(tokens)))
        return cast(Tensor, tokens + self.feed(self.before_feed(tokens)))

    def _attended(self, tokens: Tensor) -> Tensor:
        count, length, width = tokens.shape
        parts = self.projection(tokens).reshape(count, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5, dim=-1)
        return cast(Tensor, (weights @ value).transpose(1, 2).reshape(count, length, width))


class MeanState(nn.Module):
    """The mean of the states (B, n, width)."""

    def forward(self, states: Tensor) -> Tensor:
        """(B, width)."""
        return states.mean(dim=1)


class LearntPositions(nn.Module):
    """States (B, n, width) plus a vector that is learnt for each position."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(length, width))

    def forward(self, states: Tensor) -> Tensor:
        """(B, n, width)."""
        return states + self.weight


def transformer(
    feature_shape: Sequence[int],
    num_classes: int,
    vocabulary: int,
    width: int = 64,
    heads: int = 4,
    layers: int = 2,
) -> nn.Sequential:
    """A small transformer encoder (Vaswani et al. 2017): learnt positions, the mean of the states to the classes.

    Raises:
        ValueError: if the samples are no sequences, or the heads do not divide the width.
    """
    length = _length(feature_shape, "transformer")
    precondition(width % heads == 0, f"heads: found {heads} with a width of {width}; allowed: a divisor of the width")
    stack = [EncoderLayer(width, heads, 4 * width) for _ in range(layers)]
    ends = nn.LayerNorm(width), MeanState(), nn.Linear(width, num_classes)
    return nn.Sequential(TokenEmbedding(vocabulary, width), LearntPositions(length, width), *stack, *ends)


def _length(feature_shape: Sequence[int], name: str) -> int:
    precondition(
        len(feature_shape) == 1, f"{name} needs sequences of tokens, not samples of shape {tuple(feature_shape)}"
    )
    return feature_shape[0]
