"""The logits processor, with arrays in place of tensors: greedy, beams, padding, assisted, one call after
another."""

from __future__ import annotations

from typing import Any

import anygram
import anygram.transformers
import numpy
import pytest
from anygram.transformers import ConstraintProcessor

EOS, PAD = 5, 6


def finite(scores: Any) -> list[list[int]]:
    return [numpy.flatnonzero(numpy.isfinite(row)).tolist() for row in scores]


def scores(n_rows: int) -> Any:
    return numpy.zeros((n_rows, 9), dtype=numpy.float32)


def generate(
    processor: ConstraintProcessor, prompts: list[list[int]], wishes: list[int], steps: int
) -> list[list[int]]:
    """Greedy decoding of a model that likes some tokens best, in this order, everywhere."""
    rows = numpy.array(prompts)
    done = numpy.zeros(len(rows), dtype=bool)
    liked = numpy.full(9, -50, dtype=numpy.float32)
    liked[wishes] = -numpy.arange(len(wishes))
    for _ in range(steps):
        given = numpy.tile(liked, (len(rows), 1))
        next_tokens = processor(rows, given).argmax(axis=1)
        assert (given == liked).all()
        next_tokens[done] = PAD
        done |= next_tokens == EOS
        rows = numpy.concatenate([rows, next_tokens[:, None]], axis=1)
        if done.all():
            break
    return rows[:, len(prompts[0]) :].tolist()


def test_outputs_close_within_their_budget(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint, max_new_tokens=7)
    # It would open brackets for ever.
    for _ in range(2):
        [output] = generate(processor, [[8, 8]], [0, 1, 2, EOS], 7)
        assert output == [0, 0, 0, 2, 1, 1, 1]


def test_a_batch_with_rows_that_end_early(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint)
    outputs = generate(processor, [[PAD, 8], [7, 8]], [2, EOS, 0], 5)
    assert outputs == [[2, EOS], [2, EOS]]
    rows = numpy.array([[8, 0, 2, 1], [8, 2, EOS, PAD]])
    processor = ConstraintProcessor(constraint, prompt_length=1)
    assert finite(processor(rows, scores(2))) == [[EOS], [EOS, PAD]]


def test_beams_are_reordered_and_repeated(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint)
    prompt = [[8], [8], [8]]
    processor(numpy.array(prompt), scores(3))
    processor(numpy.array([[8, 0], [8, 4], [8, 2]]), scores(3))
    answer = processor(numpy.array([[8, 4, 2], [8, 0, 2], [8, 4, 2]]), scores(3))
    assert finite(answer) == [[1], [1], [1]]
    answer = processor(numpy.array([[8, 0, 2, 1], [8, 4, 2, 1], [8, 0, 0, 0]]), scores(3))
    assert finite(answer) == [[EOS], [1], [0, 2, 4]]


def test_assisted_decoding_goes_back_and_forth(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint)
    draft = [8, 0, 0, 2, 1, 1]
    for n in range(1, 6):
        processor(numpy.array([draft[:n]]), scores(1))
    # The second draft was refused, and another token stands there.
    assert finite(processor(numpy.array([[8, 0, 2]]), scores(1))) == [[1]]
    assert finite(processor(numpy.array([[8, 0]]), scores(1))) == [[0, 2, 4]]


def test_a_new_call_is_seen(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint)
    first = generate(processor, [[8, 7]], [0, 2, 1, EOS], 3)
    # A chat goes on: the earlier output is a part of the prompt.
    again = generate(processor, [[8, 7, *first[0], 8, 8]], [2, EOS], 3)
    assert again == [[2, EOS]]
    other = generate(processor, [[7], [7]], [2, EOS], 3)
    assert other == [[2, EOS]] * 2


def test_continuous_batching_is_refused(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint)
    processor(numpy.array([[7], [8]]), scores(2))
    with pytest.raises(anygram.AnygramError, match="continuous batching"):
        processor(numpy.array([[0], [2]]), scores(2))


def test_rows_that_are_not_allowed(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint, prompt_length=0)
    with pytest.raises(anygram.RefusedError):
        processor(numpy.array([[1]]), scores(1))
    no_eos = anygram.Vocabulary.from_tokens([b"x"])
    with pytest.raises(anygram.AnygramError, match="eos"):
        ConstraintProcessor(anygram.Constraint(constraint.language, no_eos))


def test_an_output_that_cannot_be_short_enough(constraint: anygram.Constraint) -> None:
    language = anygram.Compiler().compile('start: "(((" "x" ")))"', "lark")
    processor = ConstraintProcessor(anygram.Constraint(language, constraint.vocabulary), max_new_tokens=4)
    with pytest.raises(anygram.AnygramError, match="needs 6 more tokens, and only 4"):
        processor(numpy.array([[8]]), scores(1))


def test_defaults_of_schemas() -> None:
    schema = {"type": "object", "properties": {"b": {"const": 1}, "a": {"const": 2}}, "required": ["a", "b"]}
    vocabulary = anygram.Vocabulary.from_tokens([b"x", None], eos=[1])
    language = anygram.transformers.constraint(schema, vocabulary).language
    assert language.read('{"b": 1, "a": 2}').is_sentence
    assert not language.read('{"a": 2, "b": 1}').is_viable
    assert not language.read('{  "b"').is_viable
    lark = anygram.transformers.constraint('start: "x"', vocabulary, "lark")
    assert lark.language.read("x").is_sentence
