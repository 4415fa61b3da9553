"""Whole requests through vLLM's own sampler of DiffusionGemma, with random logits instead of a model.

    pip download --no-deps vllm==0.33.0
    pip install torch numpy transformers
    python python/integration/vllm_diffusion.py vllm-0.33.0-*.whl

Out of the wheel run `DiffusionSampler`, `DiffusionGemmaRequestStates`, the statistics of rows, and the check
of requests, on the CPU; all else of vLLM is a stand-in, and the model's part are random logits. Not a part of
`.ci/run`, since the wheel and torch are large. Fails where a committed output is not what was asked for.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import anygram
import anygram.vllm_diffusion
import numpy as np
import torch
from engine_stubs import Wheel

REAL = {
    "vllm.exceptions",
    "vllm.model_executor.models.diffusion_gemma",
    "vllm.model_executor.models.diffusion_gemma_sampler",
    "vllm.utils.diffusion",
}
VOCABULARY = anygram.Vocabulary.builtin()
EOS = VOCABULARY.eos[0]
N_VOCAB = len(VOCABULARY) + 28
WIDTH = 24
SLOTS = 4
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "n": {"enum": [1, 22, None]}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
ASKED: list[tuple[Any, Any]] = [
    ({"json": SCHEMA}, lambda text: list(json.loads(text)) == ["name", "n"]),
    ({"regex": "[a-f]{2,5}-[0-9]+"}, lambda text: re.fullmatch(rb"[a-f]{2,5}-[0-9]+", text)),
    ({"choice": ["yes", "no"]}, lambda text: text in (b"yes", b"no")),
    ({"grammar": 'start: "(" start ")" | "x"'}, lambda text: re.fullmatch(rb"\(*x\)*", text)),
]


class Uva:
    """vLLM's buffer that host and device share."""

    def __init__(self, n: int, dtype: Any) -> None:
        self.gpu = torch.zeros(n, dtype=dtype)
        self.np = self.gpu.numpy()

    def copy_to_uva(self) -> None:
        pass


class Runner:
    """The batch of a runner: requests in slots, without scheduler and model."""

    def __init__(self, seed: int, max_steps: int) -> None:
        from vllm.model_executor.models.diffusion_gemma import (
            DiffusionGemmaModelState,
            DiffusionGemmaRequestStates,
        )

        torch.manual_seed(seed)
        self.states = DiffusionGemmaRequestStates(SLOTS, WIDTH, N_VOCAB, max_steps, torch.device("cpu"), 8, 2)
        sampling = SimpleNamespace(
            add_request=lambda slot, params: None,
            apply_staged_writes=lambda: None,
            get_top_k_top_p=lambda *_: (None, None, False),
            max_num_logprobs=lambda slots: -1,
        )
        token_ids = SimpleNamespace(add_request=lambda slot, params: None, max_num_token_ids=lambda slots: 0)
        inner = SimpleNamespace(
            sampling_states=sampling,
            logprob_token_ids_state=token_ids,
            req_states=SimpleNamespace(draft_tokens=torch.zeros(SLOTS, WIDTH, dtype=torch.int64)),
            logprobs_mode="raw_logprobs",
        )
        shard = SimpleNamespace(org_vocab_start_index=0, org_vocab_end_index=N_VOCAB)
        embeddings = SimpleNamespace(weight=torch.randn(N_VOCAB, 8), shard_indices=shard)
        state = SimpleNamespace(
            vllm_config=SimpleNamespace(
                diffusion_config=SimpleNamespace(canvas_length=WIDTH),
                model_config=None,
                structured_outputs_config=SimpleNamespace(
                    disable_any_whitespace=False, disable_additional_properties=False
                ),
                additional_config={"anygram": {"whitespace": "compact"}},
            ),
            model_config=SimpleNamespace(get_vocab_size=lambda: N_VOCAB),
            gen_config={
                "sampler_config": {"_cls_name": "EntropyBoundSampler", "entropy_bound": 0.1},
                "t_min": 0.4,
                "t_max": 0.8,
                "confidence_threshold": 0.005,
            },
            model=SimpleNamespace(
                model=SimpleNamespace(embed_tokens=embeddings, normalizer=torch.tensor(1.0))
            ),
            diffusion_states=self.states,
        )
        self.sampler = DiffusionGemmaModelState.custom_sampler(state, inner)[0]

    def add(self, slot: int, most: int, extra: Any) -> None:
        params = SimpleNamespace(max_tokens=most, extra_args=extra)
        self.states.add_request(slot)
        self.sampler.add_request(slot, params)
        self.step([slot], prefill=True)

    def step(self, slots: list[int], prefill: bool = False) -> Any:
        n = len(slots)
        rows = 0 if prefill else n * WIDTH
        batch = SimpleNamespace(
            num_reqs=n,
            num_draft_tokens=rows,
            idx_mapping=torch.tensor(slots),
            idx_mapping_np=np.array(slots),
            cu_num_logits_np=np.arange(n + 1) * (0 if prefill else WIDTH),
            num_computed_prefill_tokens_np=np.zeros(n, dtype=int),
            num_scheduled_tokens=np.ones(n, dtype=int),
            prefill_len_np=np.ones(n, dtype=int),
            query_start_loc=torch.arange(n + 1) * WIDTH,
            query_start_loc_np=np.arange(n + 1) * WIDTH,
        )
        return self.sampler(torch.randn(max(rows, 1), N_VOCAB) * 3, batch)

    def run(self, requests: dict[int, int]) -> dict[int, list[int]]:
        """Until each request has an EOS or its tokens."""
        outputs: dict[int, list[int]] = {slot: [] for slot in requests}
        active = list(requests)
        for _ in range(400):
            if not active:
                break
            output = self.step(active)
            for at, slot in enumerate(list(active)):
                count = int(output.num_sampled[at])
                outputs[slot] += output.sampled_token_ids[at, :count].tolist()
                outputs[slot] = outputs[slot][: requests[slot]]
                if EOS in outputs[slot] or len(outputs[slot]) >= requests[slot]:
                    active.remove(slot)
        assert not active
        return outputs


def text_of(tokens: list[int]) -> bytes:
    end = tokens.index(EOS) if EOS in tokens else len(tokens)
    return VOCABULARY.decode(tokens[:end])


def whole_requests() -> None:
    n_right = 0
    times: list[float] = []
    for seed in range(6):
        runner = Runner(seed, max_steps=3)
        # One canvas, or several of which the earlier end as a prefix; and one request that is free.
        most = WIDTH * (1 + seed % 3)
        requests: dict[int, int] = {}
        checks: dict[int, Any] = {}
        for slot in range(SLOTS - 1):
            asked, checks[slot] = ASKED[(seed + slot) % len(ASKED)]
            runner.add(slot, most, {"anygram": json.dumps(asked)})
            requests[slot] = most
        runner.add(SLOTS - 1, WIDTH, {})
        requests[SLOTS - 1] = WIDTH
        mask = runner.sampler._anygram._mask

        def timed(*given: Any, mask: Any = mask) -> None:
            began = time.perf_counter()
            mask(*given)
            times.append(time.perf_counter() - began)

        runner.sampler._anygram._mask = timed
        outputs = runner.run(requests)
        for slot, check in checks.items():
            assert check(text_of(outputs[slot])), (seed, slot, text_of(outputs[slot]))
            n_right += 1
    times.sort()
    print(
        f"{n_right} of {n_right} committed outputs are what was asked for; a canvas of {WIDTH} slots takes "
        f"{times[len(times) // 2] * 1e3:.1f} ms at the median and {times[-1] * 1e3:.0f} ms at most"
    )


def several_canvases() -> None:
    """A text that is longer than a canvas: the first ends as a prefix, the last as a sentence."""
    runner = Runner(9, max_steps=2)
    asked = {"regex": "(ab[0-9]c,){20,30}"}
    runner.add(0, WIDTH * 8, {"anygram": json.dumps(asked)})
    text = text_of(runner.run({0: WIDTH * 8})[0])
    assert re.fullmatch(rb"(ab[0-9]c,){20,30}", text) and len(text) > 2 * WIDTH, text
    print(f"a text over several canvases: {len(text)} bytes")


def errors() -> None:
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.engine import input_processor

    runner = Runner(10, max_steps=2)
    for source in ('{"regex": "("}', '{"regex": "abcdefghijklmnop"}'):
        runner.add(0, 2, {"anygram": source})
        runner.add(1, WIDTH, {"anygram": json.dumps({"choice": ["yes"]})})
        outputs = runner.run({0: 2, 1: WIDTH})
        assert outputs[0][0] == EOS and text_of(outputs[1]) == b"yes"
        assert runner.sampler._anygram.errors.keys() == {0}, runner.sampler._anygram.errors
    for extra in ({"anygram": "{"}, {"anygram": {"xml": 1}}, {"anygram": 1}):
        try:
            input_processor.validate_diffusion_sampling_params(
                SimpleNamespace(extra_args=extra), canvas_length=WIDTH, vocab_size=N_VOCAB
            )
        except VLLMValidationError:
            continue
        raise AssertionError(extra)
    good = SimpleNamespace(extra_args={"anygram": '{"regex": "a"}'})
    input_processor.validate_diffusion_sampling_params(good, canvas_length=WIDTH, vocab_size=N_VOCAB)
    print("errors are errors of one request, others go on")


def pinned() -> None:
    """Slots of a seed canvas that a request holds stay what they are."""
    runner = Runner(11, max_steps=3)
    seed = VOCABULARY.encode("x") * WIDTH
    at = {0: "{", 5: "b"}
    for slot, text in at.items():
        (seed[slot],) = VOCABULARY.encode(text)
    extra = {
        "anygram": json.dumps({"regex": r"\{[a-z ]{2,90}\}"}),
        "diffusion_seed_canvas": seed,
        "diffusion_pinned": list(at),
    }
    runner.add(0, WIDTH, extra)
    tokens = runner.run({0: WIDTH})[0]
    assert all(tokens[slot] == seed[slot] for slot in at), tokens
    assert re.fullmatch(rb"\{[a-z ]{2,90}\}", text_of(tokens)), text_of(tokens)
    print("pinned slots stay")


def main() -> None:
    wheel = Wheel(Path(sys.argv[1]), "vllm", REAL)
    wheel.install()
    import vllm.model_executor.models.gemma4_mm
    import vllm.multimodal
    import vllm.platforms
    import vllm.triton_utils
    import vllm.utils.torch_utils
    import vllm.v1.worker.gpu.buffer_utils
    import vllm.v1.worker.gpu.sample.output
    import vllm.v1.worker.gpu.sample.penalties

    # The model itself, which is not made: its class takes methods of another.
    vllm.model_executor.models.gemma4_mm.Gemma4ForConditionalGeneration = MagicMock()
    decorates = SimpleNamespace(register_processor=lambda *_, **__: lambda kind: kind)
    vllm.multimodal.MULTIMODAL_REGISTRY = decorates
    vllm.platforms.current_platform.simple_compile_backend = "eager"
    vllm.triton_utils.triton.jit = lambda function: function
    vllm.utils.torch_utils.async_tensor_h2d = lambda data, dtype=None, device=None: torch.as_tensor(
        data, dtype=dtype
    )
    vllm.v1.worker.gpu.buffer_utils.UvaBackedTensor = Uva
    vllm.v1.worker.gpu.sample.output.SamplerOutput = SimpleNamespace
    vllm.v1.worker.gpu.sample.penalties.use_penalty = lambda params: False
    # Nothing is compiled for steps so small.
    torch.compile = lambda **named: lambda function: function
    torch.accelerator.get_memory_info = lambda: (1 << 33, 1 << 33)
    import vllm.distributed.parallel_state
    import vllm.tokenizers
    import vllm.utils.diffusion
    import vllm.v1.engine.input_processor

    group = SimpleNamespace(world_size=1, unique_name="")
    vllm.distributed.parallel_state.get_tp_group = lambda: group
    vllm.tokenizers.cached_tokenizer_from_config = lambda model_config: VOCABULARY
    processor = vllm.v1.engine.input_processor
    processor.validate_diffusion_sampling_params = vllm.utils.diffusion.validate_diffusion_sampling_params
    anygram.vllm_diffusion.plugin()
    assert "vllm.model_executor.models.diffusion_gemma" not in sys.modules, "inert unless asked for"
    os.environ["ANYGRAM_VLLM_DIFFUSION"] = "1"
    anygram.vllm_diffusion.plugin()
    anygram.vllm_diffusion.plugin()
    whole_requests()
    several_canvases()
    errors()
    pinned()
    print("stand-ins:", ", ".join(sorted(wheel.stands_in)))


if __name__ == "__main__":
    main()
