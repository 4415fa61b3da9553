"""`anygram batch`, the package and the C API give equal answers, whatever is asked."""

from __future__ import annotations

import json
from typing import Any

import anygram
from c_library import REFUSALS, REFUSED, UNKNOWN_TOKEN, Handles, Refused
from conftest import Batch, allowed
from hypothesis import given
from hypothesis import strategies as st
from strategies import grammars, schemas, slots, vocabularies

JSON = '{}[]":,abtruefalsn 0'


@st.composite
def languages(draw: st.DrawFn) -> tuple[list[bytes | None], str, str, str | None]:
    """Tokens, and a language for them: source, format, lexer."""
    if draw(st.booleans()):
        schema = draw(schemas())
        return draw(vocabularies(JSON)), json.dumps(schema), "json-schema", None
    lexer = draw(st.sampled_from(["scannerless", "longest", "contextual"]))
    return draw(vocabularies()), draw(grammars()), "lark", lexer


def asked(source: str, format: str, lexer: str | None) -> dict[str, Any]:
    """The language of a question of `batch`."""
    if format == "json-schema":
        return {"schema": json.loads(source)}
    return {"grammar": source, "format": format, "lexer": lexer}


def ours(
    source: str, format: str, lexer: str | None, tokens: list[bytes | None]
) -> anygram.Constraint | None:
    """The package's constraint, or nothing where the language is refused."""
    try:
        language = anygram.Compiler(lexer).compile(source, format)
    except (anygram.GrammarError, anygram.LimitError):
        return None
    return anygram.Constraint(language, anygram.Vocabulary.from_tokens(tokens, eos=[len(tokens) - 1]))


def theirs(
    c: Handles, source: str, format: str, lexer: str | None, tokens: list[bytes | None]
) -> Any | None:
    """The same of C."""
    try:
        return c.constraint(source, format, lexer, tokens)
    except Refused as refused:
        assert refused.code in REFUSALS
        return None


@given(
    language=languages(),
    texts=st.lists(st.lists(st.integers(0, 30), max_size=6), min_size=1, max_size=6),
    budget=st.none() | st.integers(0, 6),
)
def test_masks(
    batch: Batch,
    language: tuple[list[bytes | None], str, str, str | None],
    texts: list[list[int]],
    budget: int | None,
) -> None:
    tokens, source, format, lexer = language
    question = {"op": "mask", **asked(source, format, lexer)} | ({} if budget is None else {"budget": budget})
    answers = batch.ask(tokens, [len(tokens) - 1], [{**question, "tokens": text} for text in texts])
    constraint = ours(source, format, lexer, tokens)
    with Handles() as c:
        handle = theirs(c, source, format, lexer, tokens)
        assert (handle is None) == (constraint is None)
        for text, answer in zip(texts, answers, strict=True):
            if constraint is None or handle is None:
                assert "error" in answer
                continue
            try:
                of_c = c.mask(handle, len(tokens), text, budget)
            except Refused as refused:
                assert refused.code in (REFUSED, UNKNOWN_TOKEN) and "error" in answer
                of_c = None
            matcher = constraint.matcher()
            try:
                matcher.advance_all(text)
            except anygram.AnygramError:
                assert of_c is None
                continue
            mask = [id for id in allowed(matcher.mask(budget=budget)) if id != len(tokens) - 1]
            assert of_c == {"allowed": mask, "eos": matcher.is_sentence}
            assert of_c == {name: answer[name] for name in of_c}


def check_witness(solver: anygram.Solver, row: list[Any], end: str, answer: anygram.Answer) -> None:
    """A yes has a completion, which keeps what was fixed and is one by itself."""
    assert (answer.witness is not None) == (answer.answer is True)
    if answer.witness is None:
        return
    for slot, filling in zip(row, answer.witness, strict=True):
        assert isinstance(filling, list) if slot is anygram.GAP else slot in (None, filling)
    flat = [id for filling in answer.witness for id in (filling if isinstance(filling, list) else [filling])]
    if flat:
        assert solver.completable(anygram.Canvas(flat, end=end)).answer


@given(language=languages(), data=st.data(), end=st.sampled_from(["sentence", "prefix"]))
def test_canvases(
    batch: Batch,
    language: tuple[list[bytes | None], str, str, str | None],
    data: st.DataObject,
    end: str,
) -> None:
    check_canvases(batch, language, data.draw(st.lists(slots(len(language[0])), min_size=1, max_size=4)), end)


def test_a_minimum_that_is_not_known(batch: Batch) -> None:
    """In `contextual` it may take too long to find out whether a prefix goes on."""
    tokens = [b"a", b"b", b"(", b")", b",", None]
    language = (tokens, 'start: ",," | start start "," | "a"', "lark", "contextual")
    assert check_canvases(batch, language, [[None, None, None]], "prefix") == [None]
    assert check_canvases(batch, language, [[None, None, None]], "sentence") == [True]


def check_canvases(
    batch: Batch,
    language: tuple[list[bytes | None], str, str, str | None],
    rows: list[list[Any]],
    end: str,
) -> list[bool | None]:
    """All give equal answers about canvases; whether each has a minimum, as far as it is known."""
    tokens, source, format, lexer = language
    wants = ["completable", "admissible", "minimum"]
    questions = [
        {
            "op": "canvas",
            **asked(source, format, lexer),
            "slots": ["*" if slot is anygram.GAP else slot for slot in row],
            "end": end,
            "want": wants,
        }
        for row in rows
    ]
    answers = batch.ask(tokens, [len(tokens) - 1], questions)
    constraint = ours(source, format, lexer, tokens)
    with Handles() as c:
        handle = theirs(c, source, format, lexer, tokens)
        assert (handle is None) == (constraint is None)
        if constraint is None or handle is None:
            assert all("error" in answer for answer in answers)
            return []
        package, solver = anygram.Solver(constraint), c.make("solver", "solver_new", handle)
        minima = []
        for row, answer in zip(rows, answers, strict=True):
            canvas = anygram.Canvas(row, end=end)
            admissible = package.admissible(canvas)
            masks = [
                allowed(mask) if why is None else None
                for mask, why in zip(admissible.masks, admissible.undecided, strict=True)
            ]
            ours_is = package.completable(canvas)
            check_witness(package, row, end, ours_is)
            minimum = package.minimum(canvas)
            of_python = {"completable": ours_is.answer, "admissible": masks, "minimum": minimum.tokens}
            assert of_python == {name: answer[name] for name in wants}
            assert of_python == c.canvas(solver, len(tokens), row, end, minimum.answer is None)
            minima.append(minimum.answer)
    return minima
