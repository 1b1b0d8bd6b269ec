"""Language models that choose among options: a small real one, and a real server of it."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch

import orbical as ob

transformers = pytest.importorskip("transformers")

DATA = [
    ("Which is a fruit?", ["a stone", "an apple", "a chair", "the clouds above"], "B"),
    ("Which is a metal?", ["wood", "paper", "iron", "wool of sheep"], "C"),
    ("Which swims?", ["a fish", "a tree", "a house", "a hill"], "A"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random model of the Llama family with a tokenizer that was trained on the questions."""
    path = tmp_path_factory.mktemp("model")
    texts = [text for question, options, _ in DATA for text in (question, *options)]
    texts += ["Question: Answer:\nA. B. C. D."] * 20
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    symbols = ["<s>", "</s>", *bytes_to_unicode().values()]
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": "</s>"}
    plain = transformers.GPT2TokenizerFast(
        vocab={symbol: place for place, symbol in enumerate(symbols)}, merges=[], **special
    )
    tokenizer = plain.train_new_from_iterator(texts, 400)
    tokenizer.chat_template = (
        "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}</s>{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant: {% endif %}"
    )
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.4,
        max_position_embeddings=512,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


def naive(predictor, context: str, word: str) -> float:
    """Return the log-likelihood of a word after a context, from one pass over all of it."""
    start = predictor.tokenizer(context, add_special_tokens=not predictor.chat)["input_ids"]
    whole = predictor.tokenizer(context + word, add_special_tokens=not predictor.chat)["input_ids"]
    with torch.inference_mode():
        logits = predictor.module(torch.tensor([whole])).logits[0].log_softmax(-1)
    return sum(float(logits[p - 1, whole[p]]) for p in range(len(start), len(whole)))


def batch(rows):
    return {"question": [q for q, _, _ in rows], "options": [options for _, options, _ in rows]}


@pytest.mark.parametrize("scoring", ["letters", "likelihood"])
@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("size", [1, 5, 64])
def test_batches_with_shared_beginnings_agree_with_one_pass_each(folder, scoring, chat, size):
    predictor = ob.predictors.CausalLM(folder, scoring=scoring, chat=chat, batch_size=size)
    scores = predictor(batch(DATA))
    for row, (question, options, _) in enumerate(DATA):
        lines = "\n".join(f"{chr(65 + k)}. {text}" for k, text in enumerate(options))
        context = f"Question: {question}\n" + (f"{lines}\n" if scoring == "letters" else "")
        context += "Answer:"
        if chat:
            context = f"<s>user: {context}</s><s>assistant:"
        words = "ABCD" if scoring == "letters" else options
        expected = [naive(predictor, context, " " + word) for word in words]
        assert np.allclose(scores[row], expected, atol=1e-4)


def test_lengths_divide_the_likelihood(folder):
    plain, tokens, many = (
        ob.predictors.CausalLM(folder, scoring="likelihood", normalize=how)(batch(DATA))
        for how in ("none", "tokens", "bytes")
    )
    lengths = torch.tensor([[len(text.encode()) for text in options] for _, options, _ in DATA])
    assert torch.allclose(many * lengths, plain)
    counts = plain / tokens
    assert torch.allclose(counts, counts.round(), atol=1e-6)


def test_the_order_of_options_matters_to_letters_and_never_to_likelihoods(folder):
    models = {"letters": f"{folder}", "likelihood": f"{folder}:likelihood"}
    scan = ob.scan(models, DATA, group="permutations:4", task="choice", progress=False)
    found = ob.nero.position_bias(scan)
    assert float(np.abs(found["bias"].sel(model="likelihood")).max()) == 0
    assert float(np.abs(found["bias"].sel(model="letters")).max()) > 0.05
    gap = scan.data["invariance_gap"]
    assert float(gap.sel(model="likelihood").max()) < 1e-9 < float(gap.sel(model="letters").min())


def test_a_model_that_is_not_named_causal_is_one_too(folder, tmp_path, monkeypatch):
    config = transformers.GPT2Config(
        vocab_size=400, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=1
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "small")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path / "small")
    monkeypatch.chdir(tmp_path)
    models = {"letters": "small", "likelihood": "small:likelihood"}
    scan = ob.scan(models, DATA, group="cyclic_orders:4", task="choice", progress=False)
    assert scan.complete
    with pytest.raises(ob.errors.InputError, match=r"scoring: unknown name 'likelihod'"):
        ob.predictors.as_predictor("small:likelihod")


def test_a_likelihood_is_computed_once_for_all_orders(folder):
    predictor = ob.predictors.CausalLM(folder, scoring="likelihood", batch_size=4)
    passes = []
    predictor.module.register_forward_hook(lambda *_: passes.append(1))
    ob.scan(predictor, DATA, group="permutations:4", task="choice", progress=False)
    assert len(passes) <= 8  # 12 texts, of which each is scored once


class Served(BaseHTTPRequestHandler):
    """A small server of one model, with the log-probabilities of the next token."""

    predictor: ob.predictors.CausalLM
    failures = 0
    wanted: list[dict] = []  # noqa: RUF012 - shared by all requests

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Served.wanted.append({**asked, "authorization": self.headers["Authorization"]})
        if Served.failures > 0:
            Served.failures -= 1
            self.send_response(503)
            self.send_header("Retry-After", "0")
            self.end_headers()
            return
        chat = self.path.endswith("/chat/completions")
        tokenizer = self.predictor.tokenizer
        if chat:
            text = tokenizer.apply_chat_template(
                asked["messages"], tokenize=False, add_generation_prompt=True
            )
        else:
            text = asked["prompt"]
        ids = tokenizer(text, add_special_tokens=not chat)["input_ids"]
        with torch.inference_mode():
            logs = self.predictor.module(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        most = asked["top_logprobs"] if chat else asked["logprobs"]
        top = logs.topk(min(most, len(logs)))
        pairs = [(tokenizer.decode([int(i)]), float(v))
                 for v, i in zip(top.values, top.indices, strict=True)]  # fmt: skip
        if chat:
            tokens = [{"token": token, "logprob": value} for token, value in pairs]
            about = {"content": [{"token": pairs[0][0], "top_logprobs": tokens}]}
        else:
            about = {"top_logprobs": [dict(pairs)]}
        body = json.dumps({"choices": [{"text": pairs[0][0], "logprobs": about}]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(folder):
    Served.predictor = ob.predictors.CausalLM(folder)
    Served.failures, Served.wanted = 0, []
    with ThreadingHTTPServer(("127.0.0.1", 0), Served) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/v1"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("chat", [False, True])
def test_an_endpoint_gives_the_scores_of_the_model_behind_it(server, folder, chat, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    served = ob.predictors.Endpoint(server, "tiny", chat=chat, top=400, key="MY_KEY")
    scores = served(batch(DATA))
    rows = [[chr(65 + k) for k in range(4)]] * 3
    tokenizer = Served.predictor.tokenizer
    for row, (question, options, _) in enumerate(DATA):
        lines = "\n".join(f"{letter}. {o}" for letter, o in zip(rows[row], options, strict=True))
        context = f"Question: {question}\n{lines}\nAnswer:"
        if chat:
            context = f"<s>user: {context}</s><s>assistant: "
        ids = tokenizer(context, add_special_tokens=not chat)["input_ids"]
        with torch.inference_mode():
            logs = Served.predictor.module(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
        names = [tokenizer.decode([k]).strip() for k in range(len(logs))]
        for k, letter in enumerate(rows[row]):
            alike = torch.tensor([name == letter for name in names])
            assert float(scores[row, k]) == pytest.approx(float(logs[alike].logsumexp(0)), abs=1e-4)
    assert {one["authorization"] for one in Served.wanted} == {"Bearer secret"}
    assert "secret" not in repr(vars(served))


def test_a_busy_endpoint_is_asked_again_and_a_scan_runs(server):
    Served.failures = 3
    scan = ob.scan(f"{server}#tiny", DATA, group="cyclic_orders:4", task="choice", progress=False)
    assert scan.complete
    assert Served.wanted[0]["model"] == "tiny"


def test_an_endpoint_that_is_not_there_says_so():
    gone = ob.predictors.Endpoint("http://127.0.0.1:9/v1", "none", attempts=1)
    with pytest.raises(ob.errors.ModelError, match=r"refused.*is the server running\?"):
        gone(batch(DATA))


def test_arguments_are_checked(folder, tmp_path):
    with pytest.raises(ob.errors.InputError, match="scoring"):
        ob.predictors.CausalLM(folder, scoring="guess")
    with pytest.raises(ob.errors.ModelError, match="causal language model"):
        ob.predictors.CausalLM(tmp_path)
    with pytest.raises(ob.errors.InputError, match="an address"):
        ob.predictors.Endpoint("localhost", "x")
    with pytest.raises(ob.errors.ModelError, match="task='choice'"):
        ob.predictors.CausalLM(folder)(torch.zeros(2, 3))


def test_a_gguf_file_without_its_package_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    with pytest.raises(ob.errors.MissingExtra, match=r"needs the package 'gguf'.*transformers"):
        ob.predictors.CausalLM(tmp_path / "small.gguf")


def test_an_address_without_the_name_of_a_model_says_so():
    with pytest.raises(ob.errors.InputError, match=r"http://localhost:8000/v1#name"):
        ob.scan("http://localhost:8000/v1", DATA, task="choice", progress=False)


@pytest.mark.parametrize(("path", "hint"), [("", True), ("/v1", False)])
def test_an_address_that_is_not_found_is_named(path, hint):
    class Nothing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Nothing) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}{path}"
        with pytest.raises(ob.errors.ModelError, match="404") as refused:
            ob.predictors.Endpoint(url, "tiny")(batch(DATA))
        running.shutdown()
        thread.join()
    assert f"{url}/chat/completions" in str(refused.value)
    assert (f"{url}/v1" in str(refused.value)) == hint


def test_what_a_service_says_about_an_error_is_shown():
    class Without(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(404)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "The model `tinny` does not exist."}}')

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Without) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{running.server_port}/v1"
        refused = pytest.raises(ob.errors.ModelError, match="The model `tinny` does not exist")
        try:
            with refused:
                ob.predictors.Endpoint(url, "tinny")(batch(DATA))
        finally:
            running.shutdown()
            thread.join()
