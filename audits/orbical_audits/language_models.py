"""Language models that choose an option of a question: functions of lists of texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

LETTERS = "ABCDEFGH"
Chooser = Callable[[list[str], list[list[str]]], Tensor]
"""From N questions and their n options to the scores `[N, n]` of the places."""
Embedder = Callable[[list[str]], Tensor]


def listed(question: str, options: Sequence[str]) -> str:
    """Return a prompt that asks for the letter of an option.

    >>> print(listed("Which is a fruit?", ["stone", "apple"]))
    Question: Which is a fruit?
    A. stone
    B. apple
    Answer:
    """
    lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=False)]
    return "\n".join([f"Question: {question}", *lines, "Answer:"])


def alone(question: str) -> str:
    """Return a prompt without options.

    >>> print(alone("Which is a fruit?"))
    Question: Which is a fruit?
    Answer:
    """
    return f"Question: {question}\nAnswer:"


class CausalTexts:
    """The next-token log-probabilities of a causal model, with what prompts share computed once.

    Args:
        network: A causal model of `transformers`.
        tokenizer: Its tokenizer.
    """

    def __init__(self, network: Any, tokenizer: Any) -> None:
        self.network, self.tokenizer = network.eval(), tokenizer

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts, each with the token that begins a text."""
        found: list[list[int]] = self.tokenizer([*texts])["input_ids"]
        return found

    @torch.inference_mode()
    def states(self, rows: list[list[int]], first: int) -> tuple[Tensor, int]:
        """Return the last states `[N, L, D]` of tokens, and the token that they begin with.

        Args:
            rows: The tokens of N texts. What all share is computed once; rows are padded at their
                ends, which no earlier token sees.
            first: The first token whose state is needed.
        """
        shared = _shared(rows, first)
        cache = self.network.model(torch.tensor([rows[0][:shared]])).past_key_values
        cache.batch_repeat_interleave(len(rows))
        width = max(map(len, rows))
        tails = torch.tensor([row[shared:] + [0] * (width - len(row)) for row in rows])
        states: Tensor = self.network.model(tails, past_key_values=cache).last_hidden_state
        return states, shared

    def letters(self, examples: str = "") -> Chooser:
        """Return a function that scores options by the logits of their letters."""

        @torch.inference_mode()
        def scores(question: list[str], options: list[list[str]]) -> Tensor:
            count = len(options[0])
            tokens = [self.tokenizer.encode(f" {letter}")[-1] for letter in LETTERS[:count]]
            head = self.network.get_output_embeddings().weight[tokens]
            found = torch.empty(len(question), count)
            for text, places in _places(question).items():
                rows = self.tokens([examples + listed(text, options[place]) for place in places])
                states, start = self.states(rows, min(map(len, rows)) - 1)
                last = [len(row) - start - 1 for row in rows]
                found[places] = states[range(len(rows)), last] @ head.T
            return found

        return scores

    @torch.inference_mode()
    def likelihood(self, question: list[str], options: list[list[str]]) -> Tensor:
        """Return the log-probability of each option's text after the question alone."""
        found = torch.empty(len(question), len(options[0]))
        for text, places in _places(question).items():
            texts = sorted({option for place in places for option in options[place]})
            known = dict(zip(texts, self._log_probabilities(alone(text), texts), strict=True))
            for place in places:
                found[place] = torch.tensor([known[option] for option in options[place]])
        return found

    def _log_probabilities(self, prompt: str, texts: Sequence[str]) -> list[float]:
        rows = self.tokens([f"{prompt} {text}" for text in texts])
        begin = len(self.tokens([prompt])[0])
        states, start = self.states(rows, begin - 1)
        head = self.network.get_output_embeddings()
        sums = []
        for row, own in zip(rows, states, strict=True):
            before = own[begin - 1 - start : len(row) - 1 - start]  # a state predicts what follows
            chosen = head(before).log_softmax(-1)[range(len(before)), row[begin:]]
            sums.append(float(chosen.sum()))
        return sums


def _shared(rows: list[list[int]], most: int) -> int:
    """Return how many first tokens all rows share, up to a number.

    >>> _shared([[2, 5, 6, 7], [2, 5, 8]], 3), _shared([[2, 5], [2, 5]], 1)
    (2, 1)
    """
    return next((k for k in range(most) if len({row[k] for row in rows}) > 1), most)


def _places(texts: Sequence[str]) -> dict[str, list[int]]:
    """Return where each text stands.

    >>> _places(["a", "b", "a"])
    {'a': [0, 2], 'b': [1]}
    """
    found: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        found.setdefault(text, []).append(place)
    return found


def similarity(embedded: Embedder, scale: float = 20.0) -> Chooser:
    """Return a function that scores options by the cosine of their embedding and the question's.

    Args:
        embedded: From texts to vectors of length 1.
        scale: Of the cosine; 20 is that of the training of sentence embeddings.
    """

    def scores(question: list[str], options: list[list[str]]) -> Tensor:
        texts = [*dict.fromkeys([*question, *(text for row in options for text in row)])]
        known = dict(zip(texts, embedded(texts), strict=True))
        rows = [
            torch.stack([known[option] for option in row]) @ known[text]
            for text, row in zip(question, options, strict=True)
        ]
        return scale * torch.stack(rows)

    return scores


def sentence_embedder(network: Any, tokenizer: Any) -> Embedder:
    """Return mean-pooled embeddings of length 1, of one text at a time."""

    @torch.inference_mode()
    def embedded(texts: list[str]) -> Tensor:
        vectors = []
        for text in texts:
            states = network(**tokenizer(text, return_tensors="pt")).last_hidden_state
            vectors.append(torch.nn.functional.normalize(states[0].mean(0), dim=0))
        return torch.stack(vectors)

    return embedded
