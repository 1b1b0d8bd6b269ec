"""A network that compares two sentences token by token."""

from __future__ import annotations

import torch
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
