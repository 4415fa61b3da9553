"""Whole generations of diffusion models in torch and transformers under every strategy, on tiny models with
random weights.

    python python/integration/diffusion_generate.py [RUNS]

A LLaDA-shaped and a Dream-shaped model are bidirectional encoders of torch, since transformers has none of
their classes; Dream's loop is one with its hooks, written from its description. BERT, Llama and
DiffusionGemma are the classes of transformers. Not a part of `.ci/run`, since torch takes some gigabytes.
Fails where a strategy that guarantees a sentence does not end with one in every run: `RUNS` for each number
of steps, 2 unless said otherwise.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import anygram
import torch
from anygram import diffusion
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DiffusionGemmaConfig,
    DiffusionGemmaForBlockDiffusion,
    LlamaConfig,
    LlamaForCausalLM,
    LogitsProcessorList,
)

TOKENS: list[bytes | None] = [
    None,
    None,
    None,
    *(bytes([byte]) for byte in b'{}[]":,abc012truefalsn '),
    b'{"',
    b'":',
    b'","',
    b'"}',
    b"true",
    b"null",
    b'"a":',
]
EOS, MASK, PAD = 0, 1, 2
N_COLUMNS = len(TOKENS) + 9
"""The output layers are padded."""
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"enum": [True, None, 1]}, "maxItems": 3},
        "b": {"type": "string"},
    },
    "required": ["a"],
    "additionalProperties": False,
}
GRAMMAR = 'start: item\nitem: WORD | "[" (item ("," item)*)? "]"\nWORD: /[abc]+/\n'
EXACT = ("exact", "compatible", "best", "sample")
LENGTH = 24
STEPS = (1, 2, 4, 8, LENGTH)


class Encoder(torch.nn.Module):
    """A bidirectional encoder, as LLaDA and Dream are."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = torch.nn.Embedding(N_COLUMNS, 16)
        self.places = torch.nn.Embedding(128, 16)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(16, N_COLUMNS)

    def forward(self, input_ids: Any) -> Any:
        places = torch.arange(input_ids.shape[1], device=input_ids.device)
        hidden = self.layers(self.tokens(input_ids) + self.places(places))
        return SimpleNamespace(logits=4 * self.head(hidden))


class Dream(Encoder):
    """The same, whose logits at a slot are about the next one, with the loop of Dream."""

    @torch.no_grad()
    def diffusion_generate(
        self,
        input_ids: Any,
        max_new_tokens: int,
        steps: int,
        temperature: float,
        alg: str,
        generation_tokens_hook_func: Any = lambda step, x, logits: x,
        generation_logits_hook_func: Any = lambda step, x, logits: logits,
    ) -> Any:
        x = torch.nn.functional.pad(input_ids, (0, max_new_tokens), value=MASK)
        times = torch.linspace(1, 1e-3, steps + 1)
        x = generation_tokens_hook_func(None, x, None)
        for step in range(steps):
            is_mask = x == MASK
            logits = self(x).logits
            logits = torch.cat([logits[:, :1], logits[:, :-1]], dim=1)
            logits = generation_logits_hook_func(step, x, logits)
            shares = torch.softmax(logits / (temperature or 1), dim=-1)
            likely, drawn = shares.max(dim=-1)
            if temperature > 0:
                drawn = torch.multinomial(shares.flatten(0, 1), 1).view(x.shape)
                likely = shares.gather(-1, drawn[..., None])[..., 0]
            if alg == "entropy":
                likely = (shares * torch.log(shares + 1e-10)).sum(dim=-1)
            is_last = step == steps - 1
            for row in range(len(x)):
                n_open = int(is_mask[row].sum())
                n_kept = n_open if is_last else int(n_open * (1 - times[step + 1] / times[step]))
                sureness = likely[row].masked_fill(~is_mask[row], -torch.inf)
                chosen = sureness.topk(n_kept).indices
                x[row, chosen] = drawn[row, chosen]
            x = generation_tokens_hook_func(step, x, logits)
        return x


def gemma() -> Any:
    text = {
        "vocab_size": N_COLUMNS,
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "global_head_dim": 8,
        "num_experts": 2,
        "top_k_experts": 1,
        "moe_intermediate_size": 16,
        "layer_types": ["sliding_attention", "full_attention"],
        "eos_token_id": EOS,
        "pad_token_id": PAD,
    }
    config = DiffusionGemmaConfig(text_config=text, canvas_length=LENGTH)
    return DiffusionGemmaForBlockDiffusion(config).eval()


def constraints() -> dict[str, anygram.Constraint]:
    vocabulary = anygram.Vocabulary.from_tokens(TOKENS, eos=[EOS], mask=MASK, pad=PAD)
    compact = anygram.Compiler(key_order="schema", whitespace="compact")
    return {
        "grammar": anygram.Constraint(anygram.Compiler().compile(GRAMMAR, "lark"), vocabulary),
        "schema": anygram.Constraint(compact.compile(SCHEMA, "json-schema"), vocabulary),
    }


def is_right(constraint: anygram.Constraint, text: str | None) -> bool:
    if text is None or not constraint.language.read(text).is_sentence:
        return False
    if constraint.language.format == "json-schema":
        assert "a" in json.loads(text), text
    return True


class Count:
    """How many of how many texts were right, by strategy."""

    def __init__(self) -> None:
        self.right: Counter[str] = Counter()
        self.all: Counter[str] = Counter()

    def add(self, strategy: str, is_sentence: bool, what: Any) -> None:
        self.all[strategy] += 1
        self.right[strategy] += is_sentence
        assert is_sentence or strategy not in EXACT, (strategy, what)

    def show(self, name: str) -> None:
        print(f"{name}: " + ", ".join(f"{key} {self.right[key]}/{n}" for key, n in self.all.items()))


def strategies(constraint: anygram.Constraint) -> list[str]:
    """IG-CD needs finite automata for terminals, which those of schemas are not."""
    is_schema = constraint.language.format == "json-schema"
    return [name for name in anygram.Decoder.STRATEGIES if not (is_schema and name == "intersection")]


def prompted(n_runs: int) -> None:
    """`generate` over models of all families."""
    config = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    masked = BertForMaskedLM(BertConfig(vocab_size=N_COLUMNS, max_position_embeddings=64, **config)).eval()
    causal = LlamaForCausalLM(LlamaConfig(vocab_size=N_COLUMNS, **config)).eval()
    llada = {"block": 8, "temperature": 0.5, "candidates": 12}
    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "LLaDA-shaped": (Encoder().eval(), llada),
        "LLaDA-shaped, guidance and edits": (
            Encoder().eval(),
            {**llada, "guidance": 1.0, "revision": {"above": 0.5, "most": 4}},
        ),
        "Dream-shaped": (Dream().eval(), {"family": "dream", "order": "entropy", "block": None}),
        "BERT": (masked, {"block": None}),
        "Llama": (causal, {"open_slots": "next"}),
        "DiffusionGemma": (
            gemma(),
            {
                **{name: value for name, value in anygram.Decoder.RENOISING.items() if name != "steps"},
                "family": "diffusion-gemma",
                "candidates": 16,
            },
        ),
    }
    for name, (model, options) in ways.items():
        for kind, constraint in constraints().items():
            count = Count()
            for strategy in strategies(constraint):
                decoder = anygram.Decoder(constraint, strategy)
                for steps in STEPS:
                    for seed in range(n_runs):
                        prompt = torch.randint(3, len(TOKENS), (1, 5))
                        made = diffusion.generate(
                            model,
                            prompt,
                            constraint,
                            length=LENGTH,
                            strategy=decoder,
                            steps=steps,
                            seed=seed,
                            **options,
                        )
                        count.add(strategy, is_right(constraint, made.text), made)
            count.show(f"{name}, {kind}")


def hooks(n_runs: int) -> None:
    """Dream's own loop with both hooks, over batches."""
    model = Dream().eval()
    for kind, constraint in constraints().items():
        count = Count()
        for strategy in strategies(constraint):
            hooks = diffusion.DreamHooks(constraint, strategy=strategy, candidates=12)
            for steps in STEPS:
                for run in range(n_runs):
                    prompt = torch.randint(3, len(TOKENS), (1 + run % 2, 5))
                    x = model.diffusion_generate(
                        prompt,
                        max_new_tokens=LENGTH,
                        steps=steps,
                        temperature=0.7 * (run % 3),
                        alg=("maskgit_plus", "entropy")[run % 2],
                        generation_tokens_hook_func=hooks.tokens,
                        generation_logits_hook_func=hooks.logits,
                    )
                    assert torch.equal(x[:, :5], prompt)
                    for row, text in zip(x[:, 5:].tolist(), hooks.texts, strict=True):
                        assert (MASK in row) == (text is None)
                        count.add(strategy, is_right(constraint, text), row)
        count.show(f"Dream's hooks, {kind}")
    # Without a constraint the hooks change nothing but what follows an EOS.
    language = anygram.Compiler().compile("start: /(.|\\n)*/", "lark")
    free = anygram.Constraint(language, anygram.Vocabulary.from_tokens(TOKENS, eos=[], mask=MASK))
    changed = diffusion.DreamHooks(free, strategy="none")
    for steps in STEPS:
        prompt = torch.randint(3, len(TOKENS), (2, 5))
        options: dict[str, Any] = {
            "max_new_tokens": LENGTH,
            "steps": steps,
            "temperature": 0.0,
            "alg": "entropy",
        }
        with_hooks = model.diffusion_generate(
            prompt,
            generation_tokens_hook_func=changed.tokens,
            generation_logits_hook_func=changed.logits,
            **options,
        )
        plain = model.diffusion_generate(prompt, generation_logits_hook_func=changed.logits, **options)
        assert torch.equal(with_hooks, plain)


def processors(n_runs: int) -> None:
    """DiffusionGemma's own `generate`, over batches and several canvases."""
    model = gemma()
    for kind, constraint in constraints().items():
        count = Count()
        for steps in STEPS:
            for run in range(n_runs):
                most = (LENGTH, 2 * LENGTH, LENGTH + 5)[run % 3]
                prompt = torch.randint(3, len(TOKENS), (1 + run % 2, 5))
                processor = diffusion.GemmaProcessor(constraint, max_new_tokens=most)
                out = model.generate(
                    prompt,
                    logits_processor=LogitsProcessorList([processor]),
                    max_new_tokens=most,
                    max_denoising_steps=steps,
                    eos_token_id=EOS,
                    pad_token_id=PAD,
                )
                for row in getattr(out, "sequences", out)[:, 5:].tolist():
                    end = row.index(EOS) if EOS in row else len(row)
                    assert end <= most
                    text = constraint.vocabulary.decode(row[:end]).decode()
                    count.add("best", is_right(constraint, text), row)
        count.show(f"DiffusionGemma's generate, {kind}")
    prompt = torch.randint(3, len(TOKENS), (1, 5))
    try:
        processor(prompt + 1, torch.zeros(1, LENGTH, N_COLUMNS))
        raise SystemExit("a processor served a second call")
    except anygram.AnygramError as error:
        print(f"a second call: {error}")


def wrong_calls() -> None:
    """What is wrong is said, before it does harm."""
    constraint = constraints()["grammar"]
    bare = anygram.Vocabulary.from_tokens(TOKENS, eos=[EOS])
    ids, logits = torch.zeros(1, 4, dtype=torch.long), torch.zeros(1, 4, N_COLUMNS)
    begun = diffusion.DreamHooks(constraint)
    begun.tokens(None, torch.ones(1, 4, dtype=torch.long), None)
    processor = diffusion.GemmaProcessor(constraint, max_new_tokens=4)
    for call, message in (
        (lambda: diffusion.DreamHooks(anygram.Constraint(constraint.language, bare)), "give `mask`"),
        (lambda: diffusion.DreamHooks(constraint, strategy="guess"), "no strategy"),
        (lambda: diffusion.DreamHooks(constraint).logits(0, ids, logits), "both hooks"),
        (lambda: diffusion.DreamHooks(constraint).tokens(None, ids, None), "no slot holds the mask"),
        (lambda: begun.logits(0, ids, logits[..., :3]), "3 logits a slot"),
        (lambda: begun.tokens(0, ids.repeat(2, 1), logits), "2 rows"),
        (lambda: begun.tokens(0, ids + N_COLUMNS, logits), f"{N_COLUMNS} columns"),
        (lambda: processor(ids, logits[0]), "DiffusionGemma"),
        (lambda: processor(ids, logits[..., :3]), "3 logits a slot"),
        (lambda: diffusion.generate(lambda x: logits, ids[:, :0], constraint, length=3), "columns"),
        (lambda: diffusion.generate(lambda x: logits, [], constraint, length=4), "prompt as a tensor"),
    ):
        try:
            call()
        except anygram.AnygramError as error:
            assert message in str(error), error
        else:
            raise SystemExit(f"no error: {message}")
    print("wrong calls: errors")


def infilling(n_runs: int) -> None:
    """Several regions by an autoregressive model."""
    config = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=N_COLUMNS, **config)).eval()
    markers = diffusion.FillInTheMiddle(
        prefix=[len(TOKENS)], suffix=[len(TOKENS) + 1], middle=[len(TOKENS) + 2], end=[EOS]
    )
    pieces = {"grammar": ["[", ",[", "],", "]"], "schema": ['{"a":[', ',"b":"', "}"]}
    for kind, constraint in constraints().items():
        count = Count()
        for seed in range(5 * n_runs):
            made = diffusion.infill(
                model, pieces[kind], constraint, markers, most=6, like=torch.zeros(0), seed=seed
            )
            count.add("exact", is_right(constraint, made.text), made)
        count.show(f"infilling, {kind}")


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    wrong_calls()
    prompted(n_runs)
    hooks(n_runs)
    processors(n_runs)
    infilling(n_runs)


if __name__ == "__main__":
    main()
