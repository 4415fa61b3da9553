"""The loop without torch: a model in a few lines."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from anygram_eval.batch import Batch, BatchError, Slot
from anygram_eval.loop import METHODS, Options, Rows, decode

TOKENS = [None, None, "(", ")", ",", "a", "b", "a)", "),"]
EOS, MASK = 0, 1


class Eager:
    """Random weights, the same for a seed; likes opening brackets."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def rows(self, canvas: Sequence[Slot], listed: int, step: int) -> Rows:
        draw = random.Random(self.seed * 1000 + step)
        rows = []
        for token in canvas:
            weights = [draw.random() + (token == 2) for token in range(len(TOKENS))]
            if token is None:
                pairs = [(at, math.log(weight)) for at, weight in enumerate(weights) if at != MASK]
                rows.append(sorted(pairs, key=lambda pair: -pair[1])[:listed])
        return rows


@pytest.fixture
def batch(program: str, grammar: Path, tmp_path: Path) -> Iterator[Batch]:
    vocab = tmp_path / "vocab.json"
    vocab.write_text(json.dumps(TOKENS))
    with Batch(grammar, vocab, eos=[EOS], mask=MASK, program=program) as batch:
        yield batch


def text(canvas: Sequence[Slot]) -> str:
    end = canvas.index(EOS) if EOS in canvas else len(canvas)
    return "".join(TOKENS[token] or "" for token in canvas[:end] if token is not None)


def test_questions_are_answered_and_refused(batch: Batch) -> None:
    assert batch.is_sentence("(a,b)") == (True, True)
    assert batch.is_sentence("(a,b") == (False, True)
    assert batch.canvas([2, None, 3], ["completable"])["completable"] is True
    with pytest.raises(BatchError, match="unknown op"):
        batch.ask("nothing")
    with pytest.raises(BatchError, match="vocabulary"):
        batch.canvas([99], ["completable"])
    assert batch.is_sentence("a") == (True, True)
    assert batch.us > 0


def test_a_program_that_ends_says_why(program: str, tmp_path: Path) -> None:
    missing = Batch(tmp_path / "none.lark", tmp_path / "none.json", eos=[0], program=program)
    with missing as batch, pytest.raises(BatchError, match="none"):
        batch.is_sentence("a")


@pytest.mark.parametrize("steps", [1, 4, 12])
@pytest.mark.parametrize("method", METHODS)
def test_exact_methods_end_with_sentences(batch: Batch, method: str, steps: int) -> None:
    n_sentences = 0
    for seed in range(6):
        options = Options(method=method, steps=steps, block=6 if seed % 2 else None, temperature=0.5, seed=seed)
        decoded = decode(Eager(seed), batch, [None] * 12, [EOS], options)
        assert decoded.asked == len(decoded.steps_us) <= 12
        assert decoded.refused <= decoded.proposed
        if decoded.stuck:
            assert method not in ("exact", "compatible", "best", "none")
            assert None in decoded.canvas
            continue
        sentence = batch.is_sentence(text(decoded.canvas))[0]
        n_sentences += sentence
        if method in ("exact", "compatible", "best"):
            assert sentence, decoded.canvas
        end = decoded.canvas.index(EOS) if EOS in decoded.canvas else 12
        assert all(token == EOS for token in decoded.canvas[end:]) or method == "none"
    if method == "none":
        assert n_sentences < 6


def test_equal_seeds_give_equal_canvases(batch: Batch) -> None:
    def run() -> list[Slot]:
        options = Options(method="compatible", steps=4, block=None, temperature=1.0, seed=7)
        return decode(Eager(3), batch, [None] * 10, [EOS], options).canvas

    assert run() == run()


def test_given_tokens_stay(batch: Batch) -> None:
    canvas: list[Slot] = [2, None, None, 4, None, None, None]
    decoded = decode(Eager(1), batch, canvas, [EOS], Options(steps=3, block=None))
    assert (decoded.canvas[0], decoded.canvas[3]) == (2, 4)
    assert batch.is_sentence(text(decoded.canvas))[0]


def test_unknown_methods_are_refused(batch: Batch) -> None:
    with pytest.raises(ValueError, match="known"):
        decode(Eager(1), batch, [None], [EOS], Options(method="guess"))
