"""Outlines' own generators under constraints, with a tiny model of transformers and random weights.

    pip install outlines torch transformers tokenizers
    python python/integration/outlines_generate.py

Not a part of `.ci/run`, since torch takes some gigabytes. Fails where an output is not what was asked for.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any

import anygram
import anygram.outlines
import outlines
import torch
from outlines.generator import SteerableGenerator
from outlines.types import CFG, Regex
from pydantic import BaseModel, Field
from transformers_generate import model as tiny
from transformers_generate import tokenizer

NEW_TOKENS = 150


class Color(Enum):
    red = "red"
    blue = "blue"


class Record(BaseModel):
    name: str = Field(max_length=6)
    color: Color
    tags: list[bool] = Field(max_length=3)


def main() -> None:
    tokens = tokenizer()
    weights = tiny(len(tokens), 2, seed=1)
    model: Any = outlines.from_transformers(weights, tokens)
    try:
        outlines.Generator(model, Record, backend="anygram")
    except ValueError as error:
        assert "not supported" in str(error)
    anygram.outlines.register()
    anygram.outlines.register()
    from outlines.backends import BaseBackend

    assert issubclass(anygram.outlines.Backend, BaseBackend)
    arithmetic = 'start: sum\nsum: NUMBER | "(" sum "+" sum ")"\nNUMBER: /[0-9]{1,3}/'
    asked: list[tuple[Any, Any]] = [
        (Record, lambda text: Record.model_validate_json(text)),
        (Regex(r"[a-f]{2,4}-[0-9]{2}"), lambda text: re.fullmatch(r"[a-f]{2,4}-[0-9]{2}", text)),
        (CFG(arithmetic), lambda text: re.fullmatch(r"[0-9+()]+", text)),
        (Color, lambda text: text in ("red", "blue")),
    ]
    for output_type, check in asked:
        generator = outlines.Generator(model, output_type, backend="anygram")
        assert type(generator.logits_processor).__name__ == "AnygramLogitsProcessor"
        n_right = 0
        for seed in range(5):
            torch.manual_seed(seed)
            text = generator("A record:", max_new_tokens=NEW_TOKENS, do_sample=True)
            # Outputs that need more tokens are cut: Outlines does not tell a back end how many there are.
            try:
                n_right += bool(check(text))
            except ValueError:
                pass
        texts = generator.batch(["A record:", "x"], max_new_tokens=NEW_TOKENS, do_sample=True)
        assert len(texts) == 2
        print(f"{output_type}: {n_right} of 5 outputs are complete, the last is {text!r}")
        assert n_right >= (5 if output_type is Color else 1), output_type
    # Two back ends of one tokenizer share what they compile, and a budget closes every output.
    backend = anygram.outlines.Backend(model, max_new_tokens=40)
    assert backend.service is anygram.outlines.Backend(model).service
    schema = json.dumps(Record.model_json_schema())
    for pattern, right in ((None, True), ("", True), ("[ ]?", True), ("[ ]{0,2}", True), (r"\s*", False)):
        try:
            processor = backend.get_json_schema_logits_processor(schema, pattern)
        except anygram.AnygramError:
            assert not right, pattern
            continue
        assert right, pattern
        generator = SteerableGenerator.from_processor(model, processor)
        for seed in range(10):
            torch.manual_seed(seed)
            text = generator("A record:", max_new_tokens=40, do_sample=True)
            Record.model_validate_json(text)
            assert pattern != "" or " " not in re.sub(r'"[^"]*"', "", text)
    print("outputs with a budget are complete")


if __name__ == "__main__":
    main()
