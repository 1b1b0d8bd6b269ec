"""A pretrained transformer encoder with a classifier of sentence pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

DROPOUT, EPSILON = 0.1, 1e-12
"""Of BERT."""


class EncoderLayer(nn.Module):
    """Attention among tokens, then two linear layers, each added to its input and normalized.

    Args:
        width: Channels of a token.
        heads: Of the attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.merge = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, EPSILON) for _ in range(2))
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, tokens: Tensor, present: Tensor) -> Tensor:
        """Return tokens `[n, t, width]` of tokens; `present` is `[n, 1, 1, t]`."""
        query, key, value = (
            layer(tokens).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        share = DROPOUT if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, present, share)
        tokens = self.norms[0](tokens + self.drop(self.merge(seen.transpose(1, 2).flatten(2))))
        inner = self.down(functional.gelu(self.up(tokens)))
        return self.norms[1](tokens + self.drop(inner))


class PairEncoder(nn.Module):
    """BERT's encoder of a sentence pair, the mean over its tokens, and a linear classifier.

    A row of tokens is `[CLS] premise [SEP] hypothesis [SEP]`, then zeros; what follows the first
    separator is of the second kind.

    Args:
        tokens: Number of different tokens.
        separator: The token `[SEP]`.
        width: Channels of a token.
        layers: Of the encoder.
        heads: Of the attention.
        longest: Most tokens of a pair.
        classes: Number of classes.

    Example:
        >>> network = PairEncoder(tokens=9, separator=2, width=8, layers=1, heads=2, longest=6)
        >>> network(torch.tensor([[1, 5, 2, 7, 2, 0], [1, 2, 2, 0, 0, 0]])).shape
        torch.Size([2, 3])

    Paper: Devlin et al. 2019; with the weights of MiniLM (Wang et al. 2020) it stands where the ESD
    paper has BERT.
    """

    def __init__(
        self,
        tokens: int,
        separator: int,
        width: int = 384,
        layers: int = 6,
        heads: int = 12,
        longest: int = 512,
        classes: int = 3,
    ) -> None:
        super().__init__()
        self.separator = separator
        self.words = nn.Embedding(tokens, width)
        self.places, self.kinds = nn.Embedding(longest, width), nn.Embedding(2, width)
        self.norm, self.drop = nn.LayerNorm(width, EPSILON), nn.Dropout(DROPOUT)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.classify = nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits `[n, classes]` of tokens `[n, t]`."""
        return self.classify(self.drop(self.encode(tokens)))

    def encode(self, tokens: Tensor) -> Tensor:
        """Return the mean over the tokens of each pair, `[n, width]`."""
        present = tokens > 0
        ends = (tokens == self.separator).long()
        second = ((ends.cumsum(1) - ends) > 0).long() * present
        each = self.words(tokens) + self.places.weight[: tokens.shape[1]] + self.kinds(second)
        each = self.drop(self.norm(each))
        for layer in self.layers:
            each = layer(each, present[:, None, None])
        shares = present.to(each.dtype).unsqueeze(-1)
        return (each * shares).sum(1) / shares.sum(1)


PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "merge",
    "attention.output.LayerNorm": "norms.0",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norms.1",
}
"""Names of the parts of a layer in published weights of BERT, and here."""

EMBEDDINGS = {
    "word_embeddings": "words",
    "position_embeddings": "places",
    "token_type_embeddings": "kinds",
    "LayerNorm": "norm",
}


def from_bert(published: Mapping[str, NDArray], layers: int = 6) -> dict[str, Tensor]:
    """Rename published weights of BERT to those of `PairEncoder`, without its classifier."""
    names = {f"embeddings.{theirs}": ours for theirs, ours in EMBEDDINGS.items()}
    for layer in range(layers):
        head = f"encoder.layer.{layer}"
        names |= {f"{head}.{theirs}": f"layers.{layer}.{ours}" for theirs, ours in PARTS.items()}
    return {
        f"{ours}.{kind}": torch.from_numpy(np.array(published[f"{theirs}.{kind}"]))
        for theirs, ours in names.items()
        for kind in ("weight", "bias")
        if f"{theirs}.{kind}" in published
    }
