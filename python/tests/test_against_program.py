"""The package and `anygram batch` give equal answers, whatever is asked."""

from __future__ import annotations

from typing import Any

import anygram
from conftest import Batch, allowed
from hypothesis import given
from hypothesis import strategies as st
from strategies import grammars, schemas, slots, vocabularies


def compiled(source: Any, format: str, lexer: str | None = None) -> anygram.Language | None:
    """The language, or nothing where it is refused; other errors are faults."""
    try:
        return anygram.Compiler(lexer).compile(source, format)
    except (anygram.GrammarError, anygram.LimitError):
        return None


def mask_answer(matcher: anygram.Matcher, tokens: list[int], budget: int | None) -> dict[str, Any] | None:
    """What `batch` says to the op mask."""
    try:
        matcher.advance_all(tokens)
    except anygram.AnygramError as error:
        assert isinstance(error, anygram.RefusedError) or error.kind == "unknown_token"
        return None
    eos = set(matcher.eos)
    ids = [token for token in allowed(matcher.mask(budget=budget)) if token not in eos]
    return {"allowed": ids, "eos": matcher.is_sentence}


def compare_masks(
    language: anygram.Language | None,
    tokens: list[bytes | None],
    texts: list[list[int]],
    answers: list[dict[str, Any]],
    budget: int | None,
) -> None:
    """The masks after some texts are those of the program; the last token is EOS."""
    if language is None:
        assert all("error" in answer for answer in answers)
        return
    vocabulary = anygram.Vocabulary.from_tokens(tokens, eos=[len(tokens) - 1])
    constraint = anygram.Constraint(language, vocabulary)
    for text, answer in zip(texts, answers, strict=True):
        ours = mask_answer(constraint.matcher(), text, budget)
        assert (ours is None) == ("error" in answer), answer
        if ours is not None:
            assert ours == {name: answer[name] for name in ours}


@given(
    tokens=vocabularies(),
    source=grammars(),
    lexer=st.sampled_from(["scannerless", "longest", "contextual"]),
    texts=st.lists(st.lists(st.integers(0, 20), max_size=6), min_size=1, max_size=8),
    budget=st.none() | st.integers(0, 6),
)
def test_masks_of_grammars(
    batch: Batch,
    tokens: list[bytes | None],
    source: str,
    lexer: str,
    texts: list[list[int]],
    budget: int | None,
) -> None:
    eos = len(tokens) - 1
    asked = {"op": "mask", "grammar": source, "format": "lark", "lexer": lexer}
    if budget is not None:
        asked["budget"] = budget
    answers = batch.ask(tokens, [eos], [{**asked, "tokens": text} for text in texts])
    compare_masks(compiled(source, "lark", lexer), tokens, texts, answers, budget)


JSON = '{}[]":,abtruefalsn 0'
"""The letters of small JSON texts."""


@given(
    tokens=vocabularies(JSON),
    schema=schemas(),
    texts=st.lists(st.lists(st.integers(0, 30), max_size=5), min_size=1),
)
def test_masks_of_schemas(
    batch: Batch, tokens: list[bytes | None], schema: dict[str, Any], texts: list[list[int]]
) -> None:
    eos = len(tokens) - 1
    answers = batch.ask(tokens, [eos], [{"op": "mask", "schema": schema, "tokens": text} for text in texts])
    compare_masks(compiled(schema, "json-schema"), tokens, texts, answers, None)


@given(tokens=vocabularies(), source=grammars(), data=st.data(), end=st.sampled_from(["sentence", "prefix"]))
def test_canvases(
    batch: Batch, tokens: list[bytes | None], source: str, data: st.DataObject, end: str
) -> None:
    eos = len(tokens) - 1
    rows = data.draw(st.lists(slots(len(tokens)), min_size=1, max_size=4))
    asked = {"op": "canvas", "grammar": source, "format": "lark", "lexer": "longest", "end": end}
    wants = ["completable", "admissible", "minimum"]
    questions = [
        {**asked, "slots": ["*" if slot is anygram.GAP else slot for slot in row], "want": wants}
        for row in rows
    ]
    answers = batch.ask(tokens, [eos], questions)
    language = compiled(source, "lark", "longest")
    if language is None:
        assert all("error" in answer for answer in answers)
        return
    solver = anygram.Solver(anygram.Constraint(language, anygram.Vocabulary.from_tokens(tokens, eos=[eos])))
    for row, answer in zip(rows, answers, strict=True):
        canvas = anygram.Canvas(row, end=end)
        ours = solver.completable(canvas)
        assert ours.answer == answer["completable"]
        assert (ours.witness is not None) == (ours.answer is True)
        admissible = solver.admissible(canvas)
        assert len(admissible.undecided) == len(canvas.holes) == len(admissible.masks)
        if not admissible.undecided:
            assert [allowed(mask) for mask in admissible.masks] == answer["admissible"]
        assert solver.minimum(canvas).tokens == answer["minimum"]
        if ours.witness is not None:
            filled = [slot for slot in ours.witness if isinstance(slot, int)]
            assert (
                solver.completable(anygram.Canvas(ours.witness, end=end)).answer
                if len(filled) == len(row)
                else True
            )
