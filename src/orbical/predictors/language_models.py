"""Language models that choose among options: causal models of transformers, and endpoints.

A question is shown with its options, and each gets a log-likelihood: that of its letter after the
question with all options, or that of its own text after the question alone.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .._imports_and_paths import import_extra, words_of
from .._text import common_beginning
from .._trees import Tree
from ..errors import InputError, ModelError, check_name, whole_number
from .hugging_face_models import loading_model, with_all_weights
from .predictor import PartialOutputs, Predictor, Raw, model_on_device, predictor_state_hash

SCORINGS = {
    "letters": "Question: {question}\n{options}\nAnswer:",
    "likelihood": "Question: {question}\nAnswer:",
}
"""What can be scored, and the prompt before it."""
NORMALIZATIONS = ("none", "tokens", "bytes")
Prompt = str | Callable[[str, Sequence[str]], str]
Tokens = tuple[int, ...]
Json = dict[str, Any]
_LONG_PREFIX = 8
"""The shortest common beginning of prompts that is worth a pass of its own."""
_RETRIED = (408, 409, 429, 500, 502, 503, 504)


def _option_letter(place: int) -> str:
    """Return the letter of a position.

    >>> _option_letter(0), _option_letter(3)
    ('A', 'D')
    """
    return chr(65 + place)


def _filled_prompt(prompt: Prompt, question: str, options: Sequence[str]) -> str:
    r"""Return a prompt with its question and its options, a line each.

    >>> prompt = "{question}\n{options}\nAnswer:"
    >>> _filled_prompt(prompt, "Which is a fruit?", ["a stone", "an apple"])
    'Which is a fruit?\nA. a stone\nB. an apple\nAnswer:'
    """
    if callable(prompt):
        return prompt(question, options)
    lines = "\n".join(f"{_option_letter(place)}. {option}" for place, option in enumerate(options))
    before, asked, after = prompt.partition("{question}")
    shown = [part.replace("{options}", lines) for part in (before, after)]
    return shown[0] + (question if asked else "") + shown[1]


def _questions(batch: Tree) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the questions of a batch with their options, or raise."""
    if not isinstance(batch, dict) or not {"question", "options"} <= {*batch}:
        raise ModelError("expected texts question and options, as task='choice' has them")
    yield from zip(batch["question"], batch["options"], strict=True)


class CausalLM(Predictor):
    """A causal language model of transformers that scores the options of questions.

    With `scoring="letters"` an option is scored by its letter after the prompt, which shows all
    options; with `"likelihood"` by the log-likelihood of its own text after the question alone, so
    that the order of the options cannot matter. Prompts with a common beginning share its pass, and
    a text that was scored before is not scored again.

    Args:
        model: a model of transformers with a language modeling head; a folder that
            `save_pretrained` wrote; or a file `.gguf`.
        tokenizer: its tokenizer; by default the one in the folder or file.
        scoring: `"letters"` or `"likelihood"`.
        prompt: a text with `{question}` and `{options}`, before which examples may stand, or a
            function of a question and its options; by default "Question: ... Answer:".
        chat: whether the prompt is the message of a user, in the tokenizer's chat template.
        normalize: what the log-likelihood of an option's text is divided by: `"none"`, its
            `"tokens"` or its `"bytes"`.
        batch_size: the number of texts in one pass.

    Raises:
        InputError: if an argument is not one of these.
        ModelError: if the folder or file has no such model.

    See Also:
        Endpoint: A model that is served elsewhere.

    Example:
        >>> import orbical as ob
        >>> gemma = ob.predictors.CausalLM("models/gemma-3-270m")  # doctest: +SKIP
        >>> ob.scan(gemma, "questions.csv", group="permutations:4", task="choice")  # doctest: +SKIP
    """

    outputs = "logits"

    def __init__(
        self,
        model: torch.nn.Module | str | Path,
        tokenizer: Any = None,
        scoring: str = "letters",
        prompt: Prompt | None = None,
        chat: bool = False,
        normalize: str = "none",
        batch_size: int = 16,
    ) -> None:
        check_name("scoring", scoring, SCORINGS)
        check_name("normalize", normalize, NORMALIZATIONS)
        if isinstance(model, str | Path):
            self.source = f"{model}:{scoring}"
            network, tokenizer = _load_language_model(Path(model).expanduser(), tokenizer)
        else:
            self.source = f"{type(model).__name__}:{scoring}"
            network = model
        if tokenizer is None:
            raise InputError("tokenizer", "one for a model that is passed as an object", "None")
        if chat and not getattr(tokenizer, "chat_template", None):
            raise InputError("chat", "a tokenizer with a chat template", "one without")
        self.module, self.tokenizer = network.eval(), tokenizer
        self.scoring, self.normalize, self.chat = scoring, normalize, chat
        self.prompt: Prompt = SCORINGS[scoring] if prompt is None else prompt
        self.batch_size = whole_number("batch_size", batch_size, 1)
        self._scores: dict[tuple[Tokens, Tokens], float] = {}
        self._keeps = "logits_to_keep" in inspect.signature(network.forward).parameters

    @torch.no_grad()
    def __call__(self, batch: Tree) -> Raw:
        """Return a log-likelihood for each option, `[N, n]`."""
        rows = [self._token_pairs(question, options) for question, options in _questions(batch)]
        self._score([pair for row in rows for pair in row])
        return torch.tensor(
            [[self._scores[pair] / self._normalizer(pair[1]) for pair in row] for row in rows],
            dtype=torch.float64,
        )

    def _token_pairs(self, question: str, options: Sequence[str]) -> list[tuple[Tokens, Tokens]]:
        """Return the tokens of the prompt, and those of what follows for each option."""
        context = _filled_prompt(self.prompt, question, options)
        if self.chat:
            message = [{"role": "user", "content": context}]
            context = self.tokenizer.apply_chat_template(
                message, tokenize=False, add_generation_prompt=True
            )
        by_letter = self.scoring == "letters"
        words = [_option_letter(place) if by_letter else text for place, text in enumerate(options)]
        bare = context.rstrip(" ")  # a space before a word is part of its first token
        space = context[len(bare) :] or ("" if self.chat else " ")
        start = self._tokens(bare)
        return [(start, self._tokens(bare + space + word)[len(start) :]) for word in words]

    def _tokens(self, text: str) -> Tokens:
        return tuple(self.tokenizer(text, add_special_tokens=not self.chat)["input_ids"])

    def _normalizer(self, continuation: Tokens) -> float:
        if self.normalize == "bytes":
            return float(max(1, len(self.tokenizer.decode(continuation).strip().encode())))
        return float(max(1, len(continuation))) if self.normalize == "tokens" else 1.0

    def _score(self, pairs: list[tuple[Tokens, Tokens]]) -> None:
        """Add the log-likelihoods of all that were not scored yet.

        Continuations that differ in their last token alone, such as letters, are one text: its
        last logits have all of them.
        """
        waiting: dict[Tokens, list[tuple[Tokens, Tokens]]] = {}
        for pair in dict.fromkeys(pairs):
            if not pair[1]:
                raise ModelError("expected options that the tokenizer does not leave out, got none")
            if pair not in self._scores:
                waiting.setdefault(pair[0] + pair[1][:-1], []).append(pair)
        texts = sorted(waiting)  # so that neighbors begin alike
        for first in range(0, len(texts), self.batch_size):
            some = texts[first : first + self.batch_size]
            for text, logs in zip(some, self._passes(some, waiting), strict=True):
                for context, continuation in waiting[text]:
                    places = range(len(context) - 1, len(text))
                    steps = zip(places, continuation, strict=True)
                    total = sum(float(logs[place][token]) for place, token in steps)
                    self._scores[context, continuation] = total

    def _passes(
        self, texts: list[Tokens], waiting: dict[Tokens, list[tuple[Tokens, Tokens]]]
    ) -> list[dict[int, Tensor]]:
        """Return the log-probabilities of the next token, by text and by the place before it."""
        needed = [
            range(min(len(context) for context, _ in waiting[text]) - 1, len(text))
            for text in texts
        ]
        device = next(self.module.parameters()).device
        shared = min(common_beginning(texts), *(places[0] for places in needed))
        cached: Json = {}
        if shared >= _LONG_PREFIX and len(texts) > 1:
            begin = torch.tensor([texts[0][:shared]], device=device)
            cache = self.module(begin, use_cache=True, **self._logits_to_keep(begin[0, -1:] * 0))
            cache.past_key_values.batch_repeat_interleave(len(texts))
            cached = {"past_key_values": cache.past_key_values}
        else:
            shared = 0
        longest = max(map(len, texts)) - shared
        # Padding on the right changes nothing to its left in a causal model.
        rows = [[*text[shared:], *[text[-1]] * longest][:longest] for text in texts]
        places = sorted({place - shared for each in needed for place in each})
        output = self.module(
            torch.tensor(rows, device=device),
            attention_mask=torch.ones(len(texts), shared + longest, device=device).long(),
            **self._logits_to_keep(torch.tensor(places, device=device)),
            **cached,
        )
        logits = output.logits if self._keeps else output.logits[:, places]
        logs = logits.float().log_softmax(-1).cpu()
        column = {place + shared: number for number, place in enumerate(places)}
        return [
            {place: logs[row, column[place]] for place in each} for row, each in enumerate(needed)
        ]

    def _logits_to_keep(self, places: Tensor) -> Json:
        """Return the argument that computes logits at some places only: vocabularies are large."""
        return {"logits_to_keep": places} if self._keeps else {}

    def ready(self, device: torch.device) -> AbstractContextManager[None]:
        """Run the model on a device in inference mode, and move it back afterwards."""
        return model_on_device(device, self.module, self.source)

    def fingerprint(self) -> str | None:
        """Return a hash of the weights, the prompt and the scoring."""
        prompt = self.prompt if isinstance(self.prompt, str) else inspect.getsource(self.prompt)
        about = f"{self.scoring} {self.normalize} {self.chat} {prompt}"
        return predictor_state_hash(about, self.module.state_dict())

    def __getstate__(self) -> Json:
        """Return what is pickled: another process keeps scores of its own."""
        return {**self.__dict__, "_scores": {}}


def _load_language_model(path: Path, tokenizer: object) -> tuple[torch.nn.Module, Any]:
    """Load a model and its tokenizer from a folder or a GGUF file; no code in it is run."""
    library = import_extra("transformers", "transformers", f"the model {str(path)!r}")
    here: Json = {"local_files_only": True, "trust_remote_code": False}
    folder = path
    if path.suffix == ".gguf":
        import_extra("gguf", "transformers", f"the model {str(path)!r}")
        folder, here = path.parent, {**here, "gguf_file": path.name}
    with loading_model(path, "a causal language model"):
        model = with_all_weights(library.AutoModelForCausalLM, folder, **here)
        if tokenizer is None:
            tokenizer = library.AutoTokenizer.from_pretrained(folder, **here)
    return model, tokenizer


class Endpoint(Predictor):
    """A model behind an OpenAI-compatible endpoint with log-probabilities.

    An option is scored by the log-probability of its letter as the first token of the answer.
    Letters that are not among the most probable tokens get the smallest of these, which they cannot
    exceed.

    Args:
        url: the address, such as `http://localhost:8000/v1`.
        model: the name of the model there.
        prompt: as for `CausalLM`.
        chat: whether to ask `/chat/completions`; otherwise `/completions`.
        key: the environment variable with the key of the service; its value is never stored.
        top: the number of log-probabilities to ask for.
        workers: requests at the same time.
        timeout_s: how long to wait for an answer.
        attempts: how often to ask; a busy service is asked again after a while.

    See Also:
        CausalLM: A model in this process.

    Example:
        >>> import orbical as ob
        >>> served = ob.predictors.Endpoint("http://localhost:8000/v1", "mine")
        >>> ob.scan(served, "questions.csv", group="cyclic_orders:4", task="choice",
        ...         progress=False)  # doctest: +SKIP
    """

    outputs = "logits"

    def __init__(
        self,
        url: str,
        model: str,
        prompt: Prompt | None = None,
        chat: bool = True,
        key: str = "OPENAI_API_KEY",
        top: int = 20,
        workers: int = 8,
        timeout_s: float = 60.0,
        attempts: int = 4,
    ) -> None:
        if not str(url).startswith(("http://", "https://")):
            raise InputError("url", "an address such as http://localhost:8000/v1", repr(url))
        if not model:
            expected = "the name of a model at the endpoint, such as http://localhost:8000/v1#name"
            raise InputError("model", expected, f"none for {str(url)!r}")
        self.url, self.model, self.chat, self.key = str(url).rstrip("/"), model, chat, key
        self.prompt: Prompt = SCORINGS["letters"] if prompt is None else prompt
        self.top, self.workers = whole_number("top", top, 1), whole_number("workers", workers, 1)
        self.timeout_s, self.attempts = timeout_s, whole_number("attempts", attempts, 1)
        self.source = f"{self.url} {model}"

    def __call__(self, batch: Tree) -> Raw:
        """Return the log-probability of each letter, `[N, n]`; a request that fails is recorded."""
        asked = list(_questions(batch))
        with ThreadPoolExecutor(min(self.workers, len(asked)), "orbical-endpoint") as pool:
            answers = list(pool.map(lambda one: self._scores_or_error(*one), asked))
        errors = {place: why for place, why in enumerate(answers) if isinstance(why, str)}
        if len(errors) == len(answers):
            raise ModelError(f"{self.source}: {errors[0]}")
        rows = [
            [math.nan] * len(options) if isinstance(answer, str) else answer
            for answer, (_, options) in zip(answers, asked, strict=True)
        ]
        scores = torch.tensor(rows, dtype=torch.float64)
        return PartialOutputs(scores, errors) if errors else scores

    def _scores_or_error(self, question: str, options: Sequence[str]) -> list[float] | str:
        """Return the scores of the letters, or what went wrong."""
        text = _filled_prompt(self.prompt, question, options)
        wanted: Json = {"model": self.model, "max_tokens": 1, "temperature": 0}
        if self.chat:
            path, messages = "/chat/completions", [{"role": "user", "content": text}]
            wanted |= {"messages": messages, "logprobs": True, "top_logprobs": self.top}
        else:
            path = "/completions"
            wanted |= {"prompt": text, "logprobs": self.top}
        try:
            return _letter_scores_of_endpoint(self._post(path, wanted), len(options))
        except urllib.error.HTTPError as error:
            hint = "" if error.code != 404 or self.url.endswith("/v1") else f"; try {self.url}/v1"
            return f"{words_of(error)} from {self.url}{path}{_error_message(error)}{hint}"
        except urllib.error.URLError as error:
            return f"no answer: {words_of(error).strip('<>')}; is the server running?"
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            return f"{type(error).__name__}: {words_of(error)}"

    def _post(self, path: str, wanted: Json) -> Json:
        """Send a request, again where the service is busy, and return what it answers."""
        headers = {"Content-Type": "application/json"}
        if os.environ.get(self.key):
            headers["Authorization"] = f"Bearer {os.environ[self.key]}"
        body = json.dumps(wanted).encode()
        for attempt in range(self.attempts):
            request = urllib.request.Request(self.url + path, body, headers)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_s) as answer:
                    found: Json = json.load(answer)
                    return found
            except urllib.error.HTTPError as error:
                if error.code not in _RETRIED or attempt + 1 == self.attempts:
                    raise
                time.sleep(float(error.headers.get("Retry-After") or 2**attempt))
        raise AssertionError  # the last attempt returns or raises


def _error_message(error: urllib.error.HTTPError) -> str:
    """Return what a service says about an error, such as that it has no such model."""
    try:
        about = json.load(error)["error"]
        return f": {' '.join(str(about['message'] if isinstance(about, dict) else about).split())}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _letter_scores_of_endpoint(answer: Json, count: int) -> list[float]:
    """Return the log-probability of each letter from the answer of an endpoint."""
    stated = answer["choices"][0].get("logprobs")
    if not stated:
        raise ValueError(
            "the answer has no log-probabilities; pass a function that returns letters"
        )
    if "content" in stated:
        tokens = [(one["token"], one["logprob"]) for one in stated["content"][0]["top_logprobs"]]
    else:
        tokens = [*stated["top_logprobs"][0].items()]
    least = min(value for _, value in tokens)
    scores = []
    for place in range(count):
        alike = [value for token, value in tokens if token.strip() == _option_letter(place)]
        scores.append(math.log(sum(map(math.exp, alike))) if alike else least)
    return scores
