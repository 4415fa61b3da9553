"""Every number that is an argument: out of range it is an exception of the package that says the range."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import anygram
import numpy
import pytest
from anygram import Canvas, LogProbs
from conftest import TOKENS

VOCABULARY = anygram.Vocabulary.from_tokens(TOKENS, eos=[5], pad=6)
LANGUAGE = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
CONSTRAINT = anygram.Constraint(LANGUAGE, VOCABULARY)
MASKS = numpy.zeros((2, 1), numpy.uint32)
FLAT = numpy.zeros((1, len(TOKENS)), numpy.float32)
SOLVER, WEIGHER, METHODS = (
    kind(CONSTRAINT) for kind in (anygram.Solver, anygram.Weigher, anygram.Methods)
)


def canvas() -> Canvas:
    return Canvas([0, None, anygram.GAP])


def decode(**options: Any) -> Any:
    def model(view: anygram.View) -> Any:
        return numpy.zeros((len(view.wanted), options.get("vocabulary_size", len(TOKENS))), numpy.float32)

    return anygram.Decoder(CONSTRAINT).decode(Canvas([None]), model, **options)


TOKEN: dict[str, Callable[[Any], Any]] = {
    "advance": lambda n: CONSTRAINT.matcher().advance(n),
    "advance_all": lambda n: CONSTRAINT.matcher().advance_all([n]),
    "try_advance": lambda n: CONSTRAINT.matcher().try_advance([n]),
    "validate": lambda n: CONSTRAINT.matcher().validate([n]),
    "go_to": lambda n: CONSTRAINT.matcher().go_to([n]),
    "eos of a matcher": lambda n: CONSTRAINT.matcher(eos=[n]),
    "a draft": lambda n: CONSTRAINT.matcher().fill_drafts(MASKS, 0, [n]),
    "from_tokens": lambda n: anygram.Vocabulary.from_tokens([None], eos=[n]),
    "pad": lambda n: anygram.Vocabulary.from_tokens([None], pad=n),
    "names": lambda n: anygram.Vocabulary.from_tokens([None], names={n: "a"}),
    "decode": lambda n: VOCABULARY.decode([n]),
    "bytes": VOCABULARY.bytes,
    "display": VOCABULARY.display,
    "a slot's token": lambda n: canvas().set(1, n),
    "split": lambda n: canvas().split(2, [n]),
    "a fixed slot": lambda n: Canvas([n]),
    "a proposal": lambda n: SOLVER.compatible(Canvas([None]), [(0, n)]),
    "admissible": lambda n: SOLVER.admissible(Canvas([None])).get(0, n),
    "listed": lambda n: LogProbs.listed([[(n, 0.0)]]),
    "a mask token": lambda n: decode(open_slots=n),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "row": lambda n: CONSTRAINT.matcher().fill_mask(MASKS, n),
    "rows": lambda n: anygram.fill_masks([CONSTRAINT.matcher()], MASKS, [n]),
    "threads": lambda n: anygram.fill_masks([CONSTRAINT.matcher()], MASKS, threads=n),
    "row of drafts": lambda n: CONSTRAINT.matcher().fill_drafts(MASKS, n, [0]),
    "parent": lambda n: CONSTRAINT.matcher().fill_drafts(MASKS, 0, [0], [n]),
    "budget": lambda n: CONSTRAINT.matcher().mask(budget=n),
    "budget of fill_mask": lambda n: CONSTRAINT.matcher().fill_mask(MASKS, budget=n),
    "minimum_tokens": lambda n: CONSTRAINT.matcher().minimum_tokens(n),
    "rollback": lambda n: CONSTRAINT.matcher().rollback(n),
    "tables": lambda n: anygram.Constraint(LANGUAGE, VOCABULARY, tables=n),
    "address": lambda n: anygram.MaskBuffer.from_pointer(n, 0, 0),
    "n_rows": lambda n: anygram.MaskBuffer.from_pointer(MASKS.ctypes.data, n, 0),
    "words": lambda n: anygram.MaskBuffer.from_pointer(MASKS.ctypes.data, 1, n),
    "stride": lambda n: anygram.MaskBuffer.from_pointer(MASKS.ctypes.data, 1, 1, stride=n),
    "size": lambda n: LogProbs.dense(FLAT, n),
    "remaining": lambda n: Canvas([], "prefix", remaining=n),
    "set_end": lambda n: canvas().set_end("prefix", remaining=n),
    "set": lambda n: canvas().set(n, 0),
    "clear": lambda n: canvas().clear(n),
    "pin": lambda n: canvas().pin(n),
    "unpin": lambda n: canvas().unpin(n),
    "is_pinned": lambda n: canvas().is_pinned(n),
    "close": lambda n: canvas().close(n),
    "open": lambda n: canvas().open(n),
    "merge": lambda n: canvas().merge(n, 2),
    "slot of a proposal": lambda n: SOLVER.compatible(canvas(), [(n, 0)]),
    "slot of a method's proposal": lambda n: METHODS.compatible(canvas(), [(n, 0)]),
    "hole": lambda n: SOLVER.admissible(Canvas([None])).get(n, 0),
    "count": lambda n: WEIGHER.sample(Canvas([None]), FLAT, count=n),
    "seed of samples": lambda n: WEIGHER.sample(Canvas([None]), FLAT, seed=n),
    "fillings": lambda n: METHODS.completable(Canvas([None]), "lookahead", fillings=n, log_probs=FLAT),
    "resamples": lambda n: METHODS.intersection(Canvas([None]), resamples=n),
    "steps of an intersection": lambda n: METHODS.intersection(Canvas([None]), steps=n),
    "dfa_states": lambda n: METHODS.intersection(Canvas([None]), dfa_states=n),
    "id_offset": lambda n: anygram.Vocabulary.from_bytes(b"YQ== 0\n", "tiktoken", id_offset=n),
    "vocabulary_size": lambda n: decode(vocabulary_size=n),
    "steps": lambda n: decode(steps=n),
    "block": lambda n: decode(block=n),
    "top_k": lambda n: decode(top_k=n, temperature=1.0),
    "pace": lambda n: decode(pace=n),
    "most": lambda n: decode(revision={"below": 0.5, "most": n}),
    "refusals": lambda n: decode(refusals=n),
    "inserted": lambda n: decode(inserted=n),
    "seed": lambda n: decode(seed=n),
    "limits": lambda n: anygram.Compiler(limits={"states": n}),
}
REALS: dict[str, Callable[[Any], Any]] = {
    "temperature": lambda x: decode(temperature=x),
    "last_temperature": lambda x: decode(last_temperature=x),
    "top_p": lambda x: decode(top_p=x, temperature=1.0),
    "threshold": lambda x: decode(pace={"threshold": x}),
    "below": lambda x: decode(revision={"below": x, "most": 1}),
    "floor": lambda x: LogProbs.listed([[(0, 0.0)]], floor=x),
    "a log-probability": lambda x: LogProbs.listed([[(0, x)]]),
}
INTEGERS = TOKEN | OTHERS
# No number is beyond what these mean.
UNBOUNDED = {"budget", "budget of fill_mask", "minimum_tokens"}
# Their messages list what else is possible.
CHOICES = {"a fixed slot", "a mask token", "pace", "limits"}
BIT = 1 << 31
SIZES = {
    "-10^5000": -(10**5000),
    "-2^70": -(1 << 70),
    "-1": -1,
    "2^31": BIT,
    "2^32": 2 * BIT,
    "2^63": 1 << 63,
    "2^64": 1 << 64,
    "2^70": 1 << 70,
    "10^5000": 10**5000,
}


def outcome(call: Callable[[Any], Any], number: Any) -> anygram.AnygramError | None:
    """What went wrong, if something did; other exceptions, and panics, go through."""
    try:
        call(number)
    except anygram.AnygramError as error:
        return error
    return None


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("number", SIZES.values(), ids=SIZES)
def test_integers_of_any_size(name: str, number: int) -> None:
    error = outcome(INTEGERS[name], number)
    if abs(number) < 1 << 64 or (name in UNBOUNDED and number > 0):
        return
    assert error is not None and pickle.loads(pickle.dumps(error)).args == error.args
    message = str(error)
    shown = str(number) if abs(number) < 10**4000 else "thousands of digits"
    if name not in CHOICES:
        assert shown in message and (" to " in message or "from 0" in message), message


@pytest.mark.parametrize("name", TOKEN)
@pytest.mark.parametrize("number", [-1, 2 * BIT])
def test_token_ids_out_of_range(name: str, number: int) -> None:
    error = outcome(TOKEN[name], number)
    assert error is not None and str(number) in str(error)
    if name not in CHOICES:
        assert str(error) == f"the token id is {number}; it can be 0 to 4294967295"


@pytest.mark.parametrize("name", INTEGERS)
def test_what_is_no_integer(name: str) -> None:
    """As everywhere in Python: `True` is 1, numpy's integers are integers, floats are not."""
    for one in (True, numpy.int64(1), numpy.uint8(1)):
        outcome(INTEGERS[name], one)
    for other in (1.0, numpy.float32(1), "1"):
        with pytest.raises((TypeError, anygram.AnygramError)):
            INTEGERS[name](other)


@pytest.mark.parametrize("name", REALS)
def test_numbers_that_no_float_can_be(name: str) -> None:
    for number in (10**400, -(10**5000)):
        error = outcome(REALS[name], number)
        assert error is not None and "float" in str(error)
    with pytest.raises(TypeError):
        REALS[name]("1")
    outcome(REALS[name], 1)


def test_places_beyond_a_sequence() -> None:
    undecided = SOLVER.admissible(Canvas([None])).undecided
    assert undecided[0] is undecided[-1] is None
    for place in (1, -2, 1 << 70, -(1 << 70)):
        with pytest.raises(IndexError):
            undecided[place]
