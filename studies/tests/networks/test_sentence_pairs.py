"""The network of sentence pairs."""

from __future__ import annotations

import torch

from orbical_studies.networks.sentence_pairs import CrossAttention


def network() -> CrossAttention:
    torch.manual_seed(0)
    return CrossAttention(premise=4, width=8, features=6).eval()


def test_absent_tokens_change_nothing() -> None:
    table = torch.randn(9, 6)
    tokens = torch.tensor([[3, 5, 0, 0, 7, 2, 0]])
    other = table.clone()
    other[0] = 100.0
    assert torch.equal(network()(tokens, table), network()(tokens, other))


def test_the_order_of_tokens_and_of_sentences_counts() -> None:
    table = torch.randn(9, 6)
    logits = network()(torch.tensor([[3, 5, 8, 6, 7, 2, 1], [5, 3, 8, 6, 7, 2, 1]]), table)
    assert not torch.allclose(logits[0], logits[1], atol=1e-4)
    same = CrossAttention(premise=3, width=8, features=6).eval()
    logits = same(torch.tensor([[3, 5, 8, 7, 2, 1], [7, 2, 1, 3, 5, 8]]), table)
    assert not torch.allclose(logits[0], logits[1], atol=1e-4)


def test_a_pair_does_not_depend_on_others_in_its_batch() -> None:
    table = torch.randn(9, 6)
    tokens = torch.tensor([[3, 5, 0, 0, 7, 2, 0], [1, 2, 3, 4, 5, 6, 7], [4, 0, 0, 0, 1, 0, 0]])
    alone = torch.cat([network()(row[None], table) for row in tokens])
    assert torch.allclose(network()(tokens, table), alone, atol=1e-6)
