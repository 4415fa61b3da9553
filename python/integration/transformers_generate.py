"""`generate` and continuous batching of real torch and transformers under constraints, on a tiny model with
random weights.

    python python/integration/transformers_generate.py

Not a part of `.ci/run`, since torch takes some gigabytes. Fails where an output is not what the schema says.
"""

from __future__ import annotations

import json
from typing import Any

import anygram
import anygram._tensors
import anygram.transformers
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.generation.configuration_utils import ContinuousBatchingConfig

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a", "b", None]}},
        "n": {"type": "integer"},
    },
    "required": ["name", "tags"],
}
PROMPTS = ["A record:", "Somebody wrote this long ago, and nobody has read it since:", "x"]
NEW_TOKENS = 40


def tokenizer() -> Any:
    """A byte-level BPE."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<|end|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(
        [json.dumps({"name": text, "tags": ["a", None, 17]}) for text in PROMPTS] * 9, trainer
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|end|>", pad_token="<|pad|>", padding_side="left"
    )


def model(n_tokens: int, layers: int, seed: int) -> Any:
    """Random weights; the output layer is padded."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=n_tokens + 28,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=512,
        eos_token_id=0,
        pad_token_id=1,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def check(language: anygram.Language, words: Any, rows: Any, begin: int) -> None:
    """Every output is a sentence."""
    for row in rows[:, begin:].tolist():
        end = row.index(0) if 0 in row else len(row)
        text = words.decode(row[:end], clean_up_tokenization_spaces=False)
        assert language.read(text).is_sentence, text
        value = json.loads(text)
        assert set(value["tags"]) <= {"a", "b", None} and list(value)[:2] == ["name", "tags"], text


def continuous(
    large: Any, words: Any, constraint: anygram.Constraint, space: tuple[int, int], n_outputs: int
) -> None:
    """Requests of two constraints and of none; those that fail say why."""
    digits = anygram.transformers.constraint("start: /[0-9]{3,9}/", words, "lark")
    config = ContinuousBatchingConfig(
        use_async_batching=False,
        use_cuda_graph=False,
        num_blocks=space[0],
        max_batch_tokens=space[1],
        page_size=32,
    )
    sampling = GenerationConfig(
        max_new_tokens=NEW_TOKENS,
        eos_token_id=0,
        pad_token_id=1,
        do_sample=True,
        num_return_sequences=n_outputs,
    )
    manager = large.init_continuous_batching(generation_config=sampling, continuous_batching_config=config)
    processor = anygram.transformers.ContinuousProcessor()
    processor.attach(manager)
    manager.start()
    wanted: dict[str, anygram.Constraint | None] = {}
    for at in range(12):
        own = (constraint, digits, None)[at % 3]
        given = {} if own is None else {"constraint": own}
        prompt = words(PROMPTS[at % 3])["input_ids"]
        wanted[manager.add_request(prompt, max_new_tokens=NEW_TOKENS - at, **given)] = own
    for _ in range(len(wanted) * n_outputs):
        output = manager.get_result(timeout=60)
        assert output is not None and output.error is None, output
        own = wanted[output.request_id.split("__")[0]]
        text = words.decode([token for token in output.generated_tokens if token != 0])
        failed = processor.errors.pop(output.request_id, None)
        if own is not None and not own.language.read(text).is_sentence:
            assert isinstance(failed, anygram.LimitError), (text, failed)
    manager.stop(block=True)


def main() -> None:
    words = tokenizer()
    constraint = anygram.transformers.constraint(SCHEMA, words)
    assert constraint.vocabulary.eos == (0,) and constraint.vocabulary.supports(words)
    large, small = model(len(words), 2, 1), model(len(words), 1, 2)
    ways: dict[str, dict[str, Any]] = {
        "greedy": {"do_sample": False},
        "sampling": {"do_sample": True, "temperature": 1.5, "top_k": 50},
        "beams": {"do_sample": False, "num_beams": 3},
        "sampled beams": {"do_sample": True, "num_beams": 2, "num_return_sequences": 2},
        "prompt look-up": {"do_sample": False, "prompt_lookup_num_tokens": 3},
        "assisted": {"do_sample": False, "assistant_model": small},
    }
    processor = anygram.transformers.ConstraintProcessor(constraint, max_new_tokens=NEW_TOKENS)
    for name, options in ways.items():
        alone = name in ("prompt look-up", "assisted")
        for prompts in [[prompt] for prompt in PROMPTS] + ([] if alone else [PROMPTS]):
            inputs = words(prompts, return_tensors="pt", padding=True)
            inputs.pop("token_type_ids", None)
            torch.manual_seed(3)
            rows = large.generate(
                **inputs, max_new_tokens=NEW_TOKENS, logits_processor=[processor], **options
            )
            check(constraint.language, words, rows, inputs["input_ids"].shape[1])
        print(f"{name}: ok")
    for name, space, n_outputs in (
        ("continuous batching", (64, 64), 1),
        ("continuous batching with forks, evicted requests and split prompts", (8, 16), 2),
    ):
        continuous(large, words, constraint, space, n_outputs)
        print(f"{name}: ok")
    # What is done on devices, on the CPU.
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        masked, on_device = (torch.zeros(2, len(words) + 28, dtype=kind) for _ in range(2))
        anygram.apply_mask(masked, constraint.matcher().mask())
        anygram._tensors.apply_mask(on_device, constraint.matcher().mask())
        assert torch.equal(masked, on_device)
    logits = torch.zeros(2, len(words) + 28, dtype=torch.bfloat16)
    anygram.apply_mask(logits, constraint.matcher().mask())
    assert logits.isfinite().sum() > 0
    masks = torch.zeros(2, constraint.mask_words, dtype=torch.int32)
    buffer = anygram.MaskBuffer(masks)
    constraint.matcher().fill_mask(buffer, 1)
    try:
        masks.untyped_storage().resize_(0)
        raise SystemExit("the storage of a buffer was resized")
    except RuntimeError:
        print("buffers: ok")


if __name__ == "__main__":
    main()
