"""Whole requests through SGLang's own grammar manager, with a fake runner of a model.

    pip download --no-deps sglang==0.5.23
    pip install torch numpy transformers
    python python/integration/sglang_manager.py sglang-0.5.23-*.whl

Out of the wheel run `GrammarManager`, `create_grammar_backend`, the base classes of back ends, the wrapper
for reasoning, and the search through trees of drafts (`traverse_tree`); everything else of SGLang is a
stand-in. No device is needed. Not a part of `.ci/run`, since the wheel and torch are large. Fails where a
mask or an output is wrong.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.sglang
import numpy as np
import torch
from engine_stubs import Wheel

REAL = {
    "sglang.srt.constrained.base_grammar_backend",
    "sglang.srt.constrained.grammar_manager",
    "sglang.srt.constrained.reasoner_grammar_backend",
    "sglang.srt.speculative.spec_utils",
    "sglang.srt.utils.token_sequence_matcher",
}
N_VOCAB = 1600
"""Rows of the output layer: more than the tokenizer has tokens."""
VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "n": {"enum": [1, 22, None]}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
ASKED: list[tuple[dict[str, Any], Any]] = [
    ({"json_schema": json.dumps(SCHEMA)}, lambda text: list(json.loads(text)) == ["name", "n"]),
    ({"json_schema": "$$ANY$$"}, lambda text: json.loads(text) is not ...),
    ({"regex": "[a-f]{2,5}-[0-9]+"}, lambda text: re.fullmatch(rb"[a-f]{2,5}-[0-9]+", text)),
    ({"ebnf": 'root ::= "(" [a-c]{1,4} ")"'}, lambda text: re.fullmatch(rb"\([a-c]{1,4}\)", text)),
    ({"ebnf": 'start: "x"+ ";"'}, lambda text: re.fullmatch(rb"x+;", text)),
]


class Request:
    """What the manager reads of a request."""

    def __init__(self, rid: str, reasoning: bool = False, **asked: Any) -> None:
        given = {"json_schema": None, "regex": None, "ebnf": None, "structural_tag": None, **asked}
        self.sampling_params = SimpleNamespace(ebnf_full_assistant=False, custom_params=None, **given)
        self.rid = rid
        self.require_reasoning = reasoning
        self.origin_input_ids = [1, 2, 3]
        self.grammar: Any = None
        self.grammar_key: Any = None
        self.grammar_wait_ct = 0
        self.error: str | None = None
        self.output: list[int] = []

    def finished(self) -> bool:
        return self.error is not None

    def set_finish_with_abort(self, message: str) -> None:
        self.error = message
        self.grammar = None


class Runner:
    """Requests of an engine without its scheduler, and random choices instead of a model."""

    def __init__(self, seed: int, serving: Any) -> None:
        from sglang.srt.constrained.base_grammar_backend import create_grammar_backend
        from sglang.srt.constrained.grammar_manager import GrammarManager

        self.random = random.Random(seed)
        self.backend: Any = create_grammar_backend(serving, VOCABULARY, N_VOCAB, {EOS})
        self.manager: Any = object.__new__(GrammarManager)
        self.manager.__dict__.update(
            scheduler=SimpleNamespace(model_config=SimpleNamespace()),
            grammar_backend=self.backend,
            grammar_queue=[],
            grammar_sync_size=1,
            grammar_pp_sync_work_list=[],
            pp_rank=0,
            pp_size=1,
            pp_group=None,
            _enable_strict_thinking=False,
            SGLANG_GRAMMAR_POLL_INTERVAL=0.01,
            SGLANG_GRAMMAR_MAX_POLL_ITERATIONS=2000,
        )
        self.n_masks = 0

    def ready(self, requests: list[Request]) -> None:
        queued = [request for request in requests if self.manager.process_req_with_grammar(request)]
        while queued and self.manager.has_waiting_grammars():
            self.manager.get_ready_grammar_requests()

    def masks(self, requests: list[Request]) -> Any:
        """As the batch of a step makes and moves them."""
        from sglang.srt.constrained.base_grammar_backend import GrammarRow

        first = requests[0].grammar
        masks = first.allocate_vocab_mask(vocab_size=N_VOCAB, batch_size=len(requests), device="cpu")
        entries = [
            GrammarRow(row=row, grammar=request.grammar)
            for row, request in enumerate(requests)
            if not request.grammar.finished and not request.grammar.is_terminated()
        ]
        first.fill_vocab_mask_batched(entries, masks)
        return first.move_vocab_mask(masks, "cpu")

    def step(self, requests: list[Request]) -> None:
        masks = self.masks(requests)
        logits = torch.randn(len(requests), N_VOCAB)
        requests[0].grammar.apply_vocab_mask(logits=logits, vocab_mask=masks)
        for row, request in enumerate(requests):
            allowed = torch.isfinite(logits[row]).nonzero().flatten().tolist()
            assert allowed, request.rid
            assert allowed == bits(masks[row]), request.rid
            ends = self.random.random() < 0.3 and EOS in allowed
            token = EOS if ends else self.random.choice(allowed)
            request.output.append(token)
            request.grammar.accept_token(token)
            if token == EOS:
                assert request.grammar.is_terminated()
                request.grammar.finished = True


def bits(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.numpy().view(np.uint8), bitorder="little")).tolist()


def whole_requests(seed: int, n: int, serving: Any) -> None:
    runner = Runner(seed, serving)
    checks = {str(at): ASKED[at % len(ASKED)] for at in range(n)}
    requests = [Request(rid, **asked) for rid, (asked, _) in checks.items()]
    runner.ready(requests)
    assert all(request.error is None for request in requests), [request.error for request in requests]
    began = time.perf_counter()
    active, ended = requests, 0
    for _ in range(400):
        if not active:
            break
        runner.step([request for request in active if runner.random.random() < 0.9] or active)
        for request in active:
            if request.grammar.is_terminated():
                text = VOCABULARY.decode(request.output[:-1])
                assert checks[request.rid][1](text), (request.rid, text)
                ended += 1
        active = [request for request in active if not request.grammar.is_terminated()]
    stats = runner.backend.service.stats
    assert stats["compiled"] == len(ASKED), stats
    # Templates stay as they were.
    again = Request("again", **ASKED[0][0])
    runner.ready([again])
    assert again.grammar.output.matcher.tokens == []
    print(f"{ended} of {n} requests ended with right outputs, {time.perf_counter() - began:.1f} s, {stats}")
    assert ended > n * 0.7


def errors(serving: Any) -> None:
    runner = Runner(1, serving)
    asked = [
        {"json_schema": "{"},
        {"ebnf": "root ::= nothing"},
        {"regex": "("},
        {"structural_tag": '{"format": {}}'},
        {"regex": "a"},
    ]
    requests = [Request(str(at), **one) for at, one in enumerate(asked)]
    runner.ready(requests)
    for request in requests[:-1]:
        assert request.error and "Failed to compile" in request.error, request.error
    good = requests[-1]
    assert good.error is None
    try:
        good.grammar.accept_token(VOCABULARY.encode("b")[0])
    except ValueError:
        good.grammar.accept_token(VOCABULARY.encode("a")[0])
    else:
        raise AssertionError("a token that is not allowed")
    # Remembered: refused at once.
    again = Request("again", regex="(")
    assert not runner.manager.process_req_with_grammar(again) and again.error
    print("errors are errors of one request")


def time_outs(serving: Any) -> None:
    """A time-out, or an abort, stops the compilation; nothing of it is remembered."""
    runner = Runner(7, serving)
    runner.manager.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 3
    long = json.dumps({"enum": [f"{n}" * 20 for n in range(35_000)]})
    request = Request("long", json_schema=long)
    runner.ready([request])
    assert request.error and "timed out" in request.error
    service = runner.backend.service
    assert service.stats["compiling"] == 0 and service.stats["entries"] == 0
    request = Request("aborted", json_schema=long)
    assert runner.manager.process_req_with_grammar(request)
    runner.manager.abort_requests(SimpleNamespace(abort_all=False, rid="aborted"))
    assert service.stats["compiling"] == 0 and service.stats["cancelled"] == 2
    runner.ready([])
    runner.manager.SGLANG_GRAMMAR_MAX_POLL_ITERATIONS = 2000
    good = Request("good", regex="a")
    runner.ready([good])
    assert good.error is None
    print("time-outs and aborts stop compilations")


def trees(serving: Any) -> None:
    """Trees of drafts: each mask is that of an output made anew."""
    from sglang.srt.speculative.spec_utils import traverse_tree

    runner = Runner(2, serving)
    choose = runner.random
    n_checked = 0
    for _ in range(60):
        request = Request("tree", **choose.choice(ASKED)[0])
        runner.ready([request])
        grammar = request.grammar
        for _ in range(choose.randrange(6)):
            if grammar.is_terminated():
                break
            grammar.accept_token(choose.choice(bits(runner.masks([request])[0])))
        if grammar.is_terminated():
            continue
        before = grammar.output.matcher.tokens
        n = 8
        parents = [-1] + [choose.randrange(at) for at in range(1, n)]
        tokens = [0] * n
        masks: dict[int, Any] = {}
        constraint = grammar.output.matcher.constraint
        paths: list[list[int] | None] = [[]]
        for at in range(1, n):
            above = paths[parents[at]]
            fresh = constraint.matcher()
            allowed: list[int] = []
            if above is not None and fresh.try_advance(before + above) == len(before + above):
                if not fresh.has_ended:
                    allowed = np.flatnonzero(
                        np.unpackbits(fresh.mask().view(np.uint8), bitorder="little")
                    ).tolist()
            right = allowed and choose.random() < 0.8
            tokens[at] = choose.choice(allowed) if right else choose.randrange(len(VOCABULARY))
            paths.append(above + [tokens[at]] if above is not None and tokens[at] in allowed else None)
        child, sibling = [-1] * n, [-1] * n
        for at in reversed(range(1, n)):
            sibling[at], child[parents[at]] = child[parents[at]], at
        bitmask = grammar.allocate_vocab_mask(vocab_size=N_VOCAB, batch_size=n, device="cpu")
        traverse_tree(
            torch.tensor(child), torch.tensor(sibling), torch.tensor(tokens), grammar, bitmask, N_VOCAB
        )
        assert grammar.output.matcher.tokens == before
        for at, path in enumerate(paths):
            fresh = constraint.matcher()
            if path is not None:
                fresh.advance_all(before + path)
            if path is None or fresh.has_ended:
                assert bool((bitmask[at] == -1).all())
                continue
            expected = fresh.mask()
            assert (bitmask[at].numpy().view(np.uint32)[: len(expected)] == expected).all()
            n_checked += 1
        del masks
    print(f"trees of drafts: {n_checked} masks are right")
    assert n_checked > 50


def reasoning(serving: Any) -> None:
    """SGLang's wrapper: nothing is constrained before reasoning ends."""
    end = 7
    import sglang.srt.parser.reasoning_parser as parsers

    detector = SimpleNamespace(get_think_end_token_ids=lambda tokenizer: [end], get_answer_frame=lambda: None)
    parsers.ReasoningParser = lambda **named: SimpleNamespace(detector=detector)
    serving.reasoning_parser = "some"
    runner = Runner(3, serving)
    assert type(runner.backend).__name__ == "AnygramReasonerBackend"
    request = Request("thinks", reasoning=True, regex="ab")
    runner.ready([request])
    assert request.error is None
    request.grammar.maybe_init_reasoning(True)
    for token in (20, 21):
        assert (runner.masks([request])[0] == -1).all()
        request.grammar.accept_token(token)
    request.grammar.accept_token(end)
    assert bits(runner.masks([request])[0])[0] == VOCABULARY.encode("a")[0]
    request.grammar.accept_token(VOCABULARY.encode("a")[0])
    request.grammar.rollback(2)
    assert (runner.masks([request])[0] == -1).all()
    serving.reasoning_parser = None
    print("reasoning is not constrained")


def main() -> None:
    wheel = Wheel(Path(sys.argv[1]), "sglang", REAL)
    wheel.install()
    import sglang.srt.arg_groups.choices as choices
    import sglang.srt.runtime_context as context
    import sglang.srt.sampling.sampling_params as sampling

    sampling.get_request_reasoning_end_token_ids = lambda params, allowed_sequences: None
    sampling.get_request_reasoning_in_grammar = lambda params: False

    choices.GRAMMAR_BACKEND_CHOICES = ["xgrammar"]
    serving = SimpleNamespace(
        enable_strict_thinking=False,
        constrained_json_whitespace_pattern=None,
        constrained_json_max_whitespace_cnt=None,
        constrained_json_disable_any_whitespace=False,
        reasoning_parser=None,
    )
    context.get_serving = lambda: serving
    context.get_exec = lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="anygram"))
    anygram.sglang.plugin()
    anygram.sglang.plugin()
    assert choices.GRAMMAR_BACKEND_CHOICES == ["xgrammar", "anygram"]
    errors(serving)
    time_outs(serving)
    whole_requests(4, 60, serving)
    trees(serving)
    reasoning(serving)
    print("stand-ins:", ", ".join(sorted(wheel.stands_in)))


if __name__ == "__main__":
    main()
