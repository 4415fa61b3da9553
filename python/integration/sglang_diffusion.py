"""Blocks of a diffusion model through SGLang's own loops, with random logits instead of a model.

    pip download --no-deps sglang==0.5.23
    pip install torch numpy
    python python/integration/sglang_diffusion.py sglang-0.5.23-*.whl

Out of the wheel run `DllmAlgorithm` with both of its loops and `LowConfidence`; the scheduler and the model
are stand-ins. Not a part of `.ci/run`, since the wheel and torch are large. Fails where an output is not what
was asked for.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.sglang_diffusion
import torch
from engine_stubs import Wheel

REAL = {"sglang.srt.dllm.algorithm.base", "sglang.srt.dllm.algorithm.low_confidence"}
TOKENS: list[bytes | None] = [None, None, *(bytes([byte]) for byte in range(256)), b'{"', b'":', b'"}']
VOCABULARY = anygram.Vocabulary.from_tokens(TOKENS, eos=[0], mask=1)
EOS, MASK = 0, 1
BLOCK = 8
N_COLUMNS = len(TOKENS) + 11
SCHEMA = {
    "type": "object",
    "properties": {"n": {"enum": [1, 22, None]}},
    "required": ["n"],
    "additionalProperties": False,
}
ASKED: list[tuple[dict[str, str], Any]] = [
    ({"json_schema": json.dumps(SCHEMA)}, lambda text: list(json.loads(text)) == ["n"]),
    ({"regex": "[a-f]{2,5}-[0-9]+"}, lambda text: re.fullmatch(rb"[a-f]{2,5}-[0-9]+", text)),
    ({"ebnf": 'start: "(" start ")" | "x"'}, lambda text: re.fullmatch(rb"\(*x\)*", text)),
    ({}, None),
]


class Model:
    """Random logits, which know nothing."""

    def forward(self, batch: Any, pp_proxy_tensors: Any) -> Any:
        assert pp_proxy_tensors is None
        logits = torch.randn(len(batch.input_ids), N_COLUMNS) * 3
        return SimpleNamespace(logits_output=SimpleNamespace(full_logits=logits), can_run_graph=False)


class Request:
    """What SGLang has of a request."""

    def __init__(self, rid: str, asked: dict[str, str], most: int, n_prompt: int) -> None:
        fields: dict[str, Any] = {"json_schema": None, "regex": None, "ebnf": None, "structural_tag": None}
        self.sampling_params = SimpleNamespace(**{**fields, **asked}, max_new_tokens=most)
        self.rid, self.tokenizer = rid, VOCABULARY
        self.most = most
        self.fill = [*range(40, 40 + n_prompt)]
        self.output: list[int] = []
        self.at = 0
        self.block: list[int] = []
        self.state: Any = None
        self.begin()

    def begin(self) -> None:
        """The next block: tokens of the prompt, or masks behind them."""
        known = (self.fill + self.output)[self.at : self.at + BLOCK]
        self.first = len(known)
        self.block = known + [MASK] * (BLOCK - len(known))

    def end(self, block: list[int]) -> None:
        self.output += block[self.first :]
        self.at += BLOCK
        if EOS in self.output:
            self.output = self.output[: self.output.index(EOS)]
            self.block = []
        elif len(self.output) >= self.most:
            self.output = self.output[: self.most]
            self.block = []
        else:
            self.begin()


def run(algorithm: Any, requests: list[Request]) -> None:
    """All requests, in one batch."""
    for _ in range(400):
        active = [request for request in requests if request.block]
        if not active:
            return
        flat = torch.tensor([token for request in active for token in request.block])
        batch = SimpleNamespace(
            batch_size=len(active),
            input_ids=flat,
            dllm_prompt_mask=None,
            rids=[request.rid for request in active],
            mark_forward_metadata_ready=lambda **_: None,
        )
        states = [request.state for request in active] if algorithm.fdfo else None
        _, blocks, accepted, states, _ = algorithm.run(Model(), batch, states)
        if not algorithm.fdfo:
            rows = batch.input_ids.view(len(active), BLOCK).tolist()
            for request, row in zip(active, rows, strict=True):
                request.end(row)
            assert blocks is not None
            continue
        for at, request in enumerate(active):
            request.state = states[at]
            if accepted[at]:
                request.end(blocks[at])
            else:
                request.block = blocks[at]
    raise SystemExit("blocks come to no end")


def main() -> None:
    wheel = Wheel(Path(sys.argv[1]), "sglang", REAL)
    wheel.install()
    known: dict[str, Any] = {}
    sys.modules["sglang.srt.dllm.algorithm"] = type(sys)("sglang.srt.dllm.algorithm")
    sys.modules["sglang.srt.dllm.algorithm"].__dict__.update(
        algo_name_to_cls=known, get_algorithm=None, __path__=[]
    )
    anygram.sglang_diffusion.plugin()
    assert not known, "it is inert"
    os.environ["ANYGRAM_SGLANG_DIFFUSION"] = "1"
    anygram.sglang_diffusion.plugin()
    anygram.sglang_diffusion.plugin()
    kind = known["AnygramLowConfidence"]
    n_right = 0
    for options in (
        {"threshold": 0.5},
        {"threshold": 0.3, "edit_threshold": 0.3, "max_post_edit_steps": 3},
        {"strategy": "best", "candidates": 32},
    ):
        for fdfo in (False, True):
            torch.manual_seed(7)
            config = SimpleNamespace(
                block_size=BLOCK, mask_id=MASK, algorithm_config=options, first_done_first_out_mode=fdfo
            )
            algorithm = kind(config)
            for seed in range(4):
                requests = []
                for at, (asked, _) in enumerate(ASKED):
                    request = Request(f"{seed}-{at}", asked, (11, 24, 17)[seed % 3], 3 + 5 * (at % 2))
                    assert kind.validate_request(request) is None
                    requests.append(request)
                run(algorithm, requests)
                for request, (_, check) in zip(requests, ASKED, strict=True):
                    if check is not None:
                        text = VOCABULARY.decode(request.output)
                        assert check(text), (options, fdfo, text)
                        n_right += 1
                assert not kind.requests
    print(f"{n_right} of {n_right} outputs are what was asked for, beside free ones")
    both = Request("x", {"regex": "a", "ebnf": "b"}, 4, 3)
    assert kind.validate_request(both) == "give one of regex, ebnf"
    failing = [Request("y", {"ebnf": "start: ("}, 9, 3), Request("z", {"regex": "a{20}"}, 9, 3)]
    assert all(kind.validate_request(request) is None for request in failing)
    run(algorithm, failing)
    assert all(request.output == [] for request in failing) and not kind.requests
    print("errors end one request, others go on")
    print("stand-ins:", ", ".join(sorted(wheel.stands_in)))


if __name__ == "__main__":
    main()
