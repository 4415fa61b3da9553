"""Generations without torch: a model in a few lines."""

from __future__ import annotations

import math
import random
from typing import Any

import anygram
import numpy
import pytest

from anygram_eval.decoding import METHODS, Options, decode

TOKENS = [None, None, b"(", b")", b",", b"a", b"b", b"a)", b"),"]
EOS, MASK = 0, 1


class Eager:
    """Random weights, the same for a seed; likes opening brackets."""

    open_slots: int | str = MASK
    vocabulary_size = len(TOKENS)

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, view: anygram.View) -> Any:
        draw = random.Random(self.seed * 1000 + view.step)
        rows = [[draw.random() + (token == 2) for token in range(len(TOKENS))] for _ in view.tokens]
        rows = numpy.array([rows[slot] for slot in view.wanted])
        rows[:, MASK] = 0
        with numpy.errstate(divide="ignore"):
            return numpy.log(rows / rows.sum(axis=1, keepdims=True)).astype(numpy.float32)


@pytest.fixture
def constraint(language: anygram.Language) -> anygram.Constraint:
    return anygram.Constraint(language, anygram.Vocabulary.from_tokens(TOKENS, eos=[EOS], mask=MASK))


def text(canvas: list[int | None]) -> bytes:
    end = canvas.index(EOS) if EOS in canvas else len(canvas)
    return b"".join(TOKENS[token] or b"" for token in canvas[:end] if token is not None)


@pytest.mark.parametrize("steps", [1, 4, 12])
@pytest.mark.parametrize("method", METHODS)
def test_exact_methods_end_with_sentences(constraint: anygram.Constraint, method: str, steps: int) -> None:
    n_sentences = 0
    for seed in range(6):
        options = Options(
            method=method, steps=steps, block=6 if seed % 2 else None, temperature=0.5, seed=seed
        )
        decoded = decode(constraint, Eager(seed), [None] * 12, options)
        assert decoded.asked == len(decoded.steps_us)
        assert decoded.refused <= decoded.proposed
        assert decoded.stuck == (None in decoded.canvas)
        assert (decoded.completion is not None) == (decoded.stuck and method == METHODS[-1])
        if decoded.completion is not None:
            assert constraint.language.read(text([*decoded.completion, EOS])).is_sentence
        if decoded.stuck:
            assert method not in ("exact", "compatible", "best", "sample", "none")
            continue
        assert set(decoded.log_probs) == set(range(12)), "each slot was filled in a step"
        assert all(math.exp(value) <= 1 for value in decoded.log_probs.values())
        sentence = constraint.language.read(text(decoded.canvas)).is_sentence
        n_sentences += sentence
        if method in ("exact", "compatible", "best", "sample"):
            assert sentence, decoded.canvas
    if method == "none":
        assert n_sentences < 6


def test_equal_seeds_give_equal_canvases(constraint: anygram.Constraint) -> None:
    def run() -> list[int | None]:
        options = Options(method="compatible", steps=4, block=None, temperature=1.0, seed=7)
        return decode(constraint, Eager(3), [None] * 10, options).canvas

    assert run() == run()


def test_given_tokens_stay(constraint: anygram.Constraint) -> None:
    canvas: list[int | None] = [2, None, None, 4, None, None, None]
    decoded = decode(constraint, Eager(1), canvas, Options(steps=3, block=None))
    assert (decoded.canvas[0], decoded.canvas[3]) == (2, 4)
    assert constraint.language.read(text(decoded.canvas)).is_sentence


def test_unknown_methods_are_refused(constraint: anygram.Constraint) -> None:
    with pytest.raises(anygram.AnygramError, match="compatible"):
        decode(constraint, Eager(1), [None], Options(method="guess"))
