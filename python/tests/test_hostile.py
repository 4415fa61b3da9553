"""Whatever is given: an answer, a `TypeError`, or an exception of the package. Never a panic, never a
crash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anygram
import numpy
from conftest import TOKENS
from hypothesis import given
from hypothesis import strategies as st

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 9),
    st.sampled_from([-(1 << 70), -1, 1 << 31, 1 << 32, 1 << 63, 1 << 64]),
    st.floats(allow_nan=True),
    st.text(max_size=4),
    st.binary(max_size=9),
    st.lists(st.one_of(st.integers(-1, 8), st.none(), st.text(max_size=1)), max_size=4),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(-1, 3), max_size=2),
    st.sampled_from([object(), int, len, anygram.GAP, anygram.Cancel(), numpy.float32(1)]),
    st.builds(
        lambda shape, dtype: numpy.zeros(shape, dtype),
        st.lists(st.integers(0, 3), max_size=3),
        st.sampled_from(["uint32", "int32", "float32", "float64", "int64", "bool", "object", "S3", ">f4"]),
    ),
)


def objects() -> dict[str, Any]:
    vocabulary = anygram.Vocabulary.from_tokens(TOKENS, eos=[5], pad=6)
    language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    constraint = anygram.Constraint(language, vocabulary)
    return {
        "vocabulary": vocabulary,
        "language": language,
        "constraint": constraint,
        "matcher": constraint.matcher(),
        "buffer": anygram.MaskBuffer(numpy.zeros((3, 1), numpy.uint32)),
        "canvas": anygram.Canvas([0, None, anygram.GAP]),
        "solver": anygram.Solver(constraint),
        "weigher": anygram.Weigher(constraint),
        "methods": anygram.Methods(constraint),
        "decoder": anygram.Decoder(constraint),
        "compiler": anygram.Compiler(),
        "log_probs": anygram.LogProbs.dense(numpy.zeros((1, 7), numpy.float32)),
    }


OBJECTS = objects()
# Pointers are promises that cannot be checked; files may be anywhere.
LEFT_OUT = {"from_pointer", "from_file", "release", "cancel"}
CALLS: dict[str, Callable[..., Any]] = (
    {
        f"{name}.{member}": getattr(value, member)
        for name, value in OBJECTS.items()
        for member in dir(value)
        if not member.startswith("_") and member not in LEFT_OUT and callable(getattr(value, member))
    }
    | {
        name: getattr(anygram, name)
        for name in (
            "Vocabulary",
            "Compiler",
            "Constraint",
            "Canvas",
            "Solver",
            "Weigher",
            "Methods",
            "Decoder",
            "MaskBuffer",
        )
    }
    | {"fill_masks": anygram.fill_masks, "apply_mask": anygram.apply_mask}
)
ARGUMENTS = st.one_of(ANYTHING, st.sampled_from(sorted(OBJECTS)).map(OBJECTS.__getitem__))


@given(st.sampled_from(sorted(CALLS)), st.lists(ARGUMENTS, max_size=3))
def test_arguments_of_any_kind(name: str, arguments: list[Any]) -> None:
    try:
        CALLS[name](*arguments)
    except (anygram.AnygramError, TypeError):
        pass
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        # What a callable of the caller raised goes through.
        assert any(callable(argument) for argument in arguments), error


@given(
    st.lists(st.tuples(st.sampled_from(["advance", "rollback", "fork", "reset", "mask"]), st.integers(0, 7)))
)
def test_any_way_to_a_text_leads_to_the_same_state(steps: list[tuple[str, int]]) -> None:
    constraint: anygram.Constraint = OBJECTS["constraint"]
    matcher = constraint.matcher()
    for name, number in steps:
        try:
            if name == "advance":
                matcher.advance(number)
            elif name == "rollback":
                matcher.rollback(number)
            elif name == "fork":
                matcher = matcher.fork()
            elif name == "reset" and number == 0:
                matcher.reset()
            else:
                matcher.mask()
        except anygram.AnygramError:
            continue
    rebuilt = constraint.matcher()
    rebuilt.advance_all(matcher.tokens)
    assert (rebuilt.mask() == matcher.mask()).all()
    assert (rebuilt.is_sentence, rebuilt.has_ended) == (matcher.is_sentence, matcher.has_ended)
