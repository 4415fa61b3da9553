"""The logits processor, with arrays in place of tensors: greedy, beams, padding, assisted, one call after
another."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import anygram
import anygram.transformers
import numpy
import pytest
from anygram.transformers import ConstraintProcessor, ContinuousProcessor

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


def test_continuous_batching_needs_the_other_processor(constraint: anygram.Constraint) -> None:
    processor = ConstraintProcessor(constraint)
    processor(numpy.array([[7], [8]]), scores(2))
    with pytest.raises(anygram.AnygramError, match="ContinuousProcessor"):
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


def test_numbers_that_cannot_be(constraint: anygram.Constraint) -> None:
    for name in ("max_new_tokens", "prompt_length"):
        with pytest.raises(anygram.AnygramError, match=name):
            ConstraintProcessor(constraint, **{name: -1})


@dataclass
class State:
    """What a processor sees of a request in continuous batching."""

    request_id: str
    generated_tokens: list[int] = field(default_factory=list)
    max_new_tokens: int | None = None
    eos_token_id: Any = EOS
    initial_tokens: list[int] = field(default_factory=lambda: [8, 8])
    _true_initial_tokens: int = 0
    logit_processor_kwargs: dict[str, Any] = field(default_factory=dict)


def step(processor: ContinuousProcessor, *states: State) -> list[list[int]]:
    """What these requests may have next; the batch has a row more."""
    processor.fill_defaults(numpy.ones(1, numpy.int32))
    arguments = processor.prepare_tensor_args([SimpleNamespace(state=state) for state in states])
    assert len(arguments) == 0
    given = scores(len(states) + 1)
    rows = finite(processor(given, arguments))
    assert (given == 0).all() and rows[-1] == list(range(9))
    return rows[:-1]


def test_requests_of_continuous_batching_come_and_go(constraint: anygram.Constraint) -> None:
    processor = ContinuousProcessor(constraint)
    first, second = State("a"), State("b", [0, 2])
    assert step(processor, first, second) == [[0, 2, 4], [1]]
    first.generated_tokens = [4]
    assert step(processor, first) == [[0, 2, 4]]
    first.generated_tokens = [4, 2]
    # The second waited, and the first was forked.
    assert step(processor, State("a__child#0", [4, 2]), second, first) == [[1], [1], [1]]
    # Evicted, it is computed again, with what it had behind its prompt.
    again = State("b", [1], initial_tokens=[8, 8, 0, 2], _true_initial_tokens=2)
    assert step(processor, again) == [[EOS]]
    assert step(processor) == [] and processor.errors == {}


def test_requests_of_continuous_batching_end(constraint: anygram.Constraint) -> None:
    processor = ContinuousProcessor(constraint)
    everything = list(range(9))
    ended, other = State("a", [2, EOS]), State("b", [2], eos_token_id=[-1, PAD])
    assert step(processor, ended, other) == [everything, [PAD]]
    none, nothing = State("c", [2], eos_token_id=-1), State("d", [2], eos_token_id=None)
    assert step(processor, none, nothing) == [[EOS], [EOS]]
    # Within its budget, a request closes.
    state = State("e", max_new_tokens=5)
    while len(state.generated_tokens) < 5:
        [allowed] = step(processor, state)
        state.generated_tokens = [*state.generated_tokens, allowed[0]]
    assert state.generated_tokens == [0, 0, 2, 1, 1]


def test_one_request_that_fails_does_not_stop_others(constraint: anygram.Constraint) -> None:
    processor = ContinuousProcessor(constraint)
    failing = [State("a", [1]), State("b", [0, 0], max_new_tokens=4)]
    assert step(processor, failing[0], State("c"), failing[1]) == [[EOS], [0, 2, 4], [EOS]]
    assert isinstance(processor.errors["a"], anygram.RefusedError)
    assert "needs 3 more tokens, and only 2" in str(processor.errors["b"])
    assert set(processor.errors) == {"a", "b"}


def test_each_request_has_its_constraint(constraint: anygram.Constraint) -> None:
    other = anygram.Constraint(anygram.Compiler().compile('start: "x" ")"', "lark"), constraint.vocabulary)
    processor = ContinuousProcessor()
    states = [State("a"), State("b", logit_processor_kwargs={"constraint": other})]
    assert step(processor, *states) == [list(range(9)), [2]]


class ContinuousBatchingLogitsProcessor(ABC):
    """The class by which transformers knows processors that see requests."""


class Processors:
    """What a manager of transformers applies."""

    def __init__(self) -> None:
        self.logits_processor: list[Any] = ["top-k"]
        self.supported_keys: dict[str, type] = {}
        self.tensors_required = 1
        self.do_processing = False


@pytest.fixture
def manager() -> Any:
    """A manager as transformers makes it."""
    config = SimpleNamespace(
        use_async_batching=False,
        cuda_graph_booleans=(False, False),
        varlen_compile_config=None,
        decode_compile_config=None,
    )
    return SimpleNamespace(
        continuous_batching_config=config, batch_processor=None, logit_processor=Processors()
    )


def test_a_processor_is_attached_before_others(constraint: anygram.Constraint, manager: Any) -> None:
    processor = ContinuousProcessor(constraint)
    processor.attach(manager)
    listed = manager.logit_processor
    assert listed.logits_processor == [processor, "top-k"]
    assert isinstance(processor, ContinuousBatchingLogitsProcessor)
    assert (listed.tensors_required, listed.do_processing) == (2, True)
    assert listed.supported_keys == {"constraint": anygram.Constraint}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("use_async_batching", True),
        ("cuda_graph_booleans", (False, True)),
        ("varlen_compile_config", object()),
        ("decode_compile_config", object()),
    ],
)
def test_managers_that_do_not_wait(
    constraint: anygram.Constraint, manager: Any, name: str, value: Any
) -> None:
    setattr(manager.continuous_batching_config, name, value)
    with pytest.raises(anygram.AnygramError, match="use_async_batching=False"):
        ContinuousProcessor(constraint).attach(manager)


def test_managers_that_were_started(constraint: anygram.Constraint, manager: Any) -> None:
    manager.batch_processor = object()
    with pytest.raises(anygram.AnygramError, match="started"):
        ContinuousProcessor(constraint).attach(manager)
