"""Classifiers of sentence pairs: one that compares token by token, and a pretrained transformer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

FAR_BELOW = -1e4
"""Score of an absent token: no attention, and finite in half precision."""


class CrossAttention(nn.Module):
    """A classifier of sentence pairs: align the tokens of both, compare, and pool.

    Token vectors are projected and see their neighbors. Every token attends to the other sentence
    and is compared with what it finds there (u, v, u - v, u v). Mean and maximum over the tokens of
    each sentence go through two layers. Both sentences share all weights.

    Args:
        premise: Tokens of the first sentence; those of the second follow.
        width: Channels of a token.
        features: Size of a token vector.
        dropout: Share of the inputs that each layer misses while it trains.

    Example:
        >>> network, table = CrossAttention(premise=3, width=8, features=4), torch.randn(10, 4)
        >>> network(torch.tensor([[4, 2, 0, 7, 9], [1, 0, 0, 3, 0]]), table).shape
        torch.Size([2, 3])

    Paper: after Parikh et al. 2016 (decomposable attention) and Chen et al. 2017 (ESIM), whose
    recurrent layers are windows of three tokens here; stands where the ESD paper has BERT.
    """

    def __init__(
        self, premise: int, width: int = 128, features: int = 256, dropout: float = 0.2
    ) -> None:
        super().__init__()
        self.premise = premise
        self.project = nn.Linear(features, width)
        self.context = nn.Linear(3 * width, width)
        self.attend = nn.Linear(width, width)
        self.compare = nn.Linear(4 * width, width)
        self.compose = nn.Linear(3 * width, width)
        self.merge = nn.Linear(8 * width, 2 * width)
        self.classify = nn.Linear(2 * width, 3)
        self.drop = nn.Dropout(dropout)

    def forward(self, tokens: Tensor, table: Tensor) -> Tensor:
        """Return logits `[n, 3]`.

        Args:
            tokens: `[n, premise + hypothesis]`, rows of the table; 0 where there is none.
            table: Token vectors `[tokens, features]`; row 0 is not used.
        """
        present = (tokens > 0).unsqueeze(-1).to(table.dtype)
        vectors = self._layer(self.project, functional.embedding(tokens, table)) * present
        masks = present[:, : self.premise], present[:, self.premise :]
        first, second = (
            (part + self._layer(self.context, _windows(part))) * mask
            for part, mask in zip(
                (vectors[:, : self.premise], vectors[:, self.premise :]), masks, strict=True
            )
        )
        keys, others = self.attend(first), self.attend(second)
        scores = keys @ others.transpose(1, 2) / keys.shape[-1] ** 0.5
        absent = [(1 - mask) * FAR_BELOW for mask in masks]
        found = torch.softmax(scores + absent[1].transpose(1, 2), 2) @ second
        found_back = torch.softmax(scores + absent[0], 1).transpose(1, 2) @ first
        a = self._compared(first, found, masks[0])
        b = self._compared(second, found_back, masks[1])
        return self.classify(self.drop(self._layer(self.merge, _comparison(a, b))))

    def _layer(self, layer: nn.Linear, inputs: Tensor) -> Tensor:
        return functional.relu(layer(self.drop(inputs)))

    def _compared(self, own: Tensor, found: Tensor, mask: Tensor) -> Tensor:
        """Return mean and maximum over tokens of how each compares with what it found."""
        each = self._layer(self.compare, _comparison(own, found)) * mask
        each = (each + self._layer(self.compose, _windows(each))) * mask
        mean = each.sum(1) / mask.sum(1).clamp(min=1)
        return torch.cat([mean, each.amax(1)], -1)


def _comparison(first: Tensor, second: Tensor) -> Tensor:
    return torch.cat([first, second, first - second, first * second], -1)


def _windows(vectors: Tensor) -> Tensor:
    """Put each token `[n, tokens, c]` between its neighbors: `[n, tokens, 3 c]`."""
    framed = functional.pad(vectors, (0, 0, 1, 1))
    return torch.cat([framed[:, :-2], vectors, framed[:, 2:]], -1)


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
