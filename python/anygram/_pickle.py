"""How values are made again from a pickle."""

from __future__ import annotations

from typing import Any

from anygram import _native
from anygram._errors import VocabularyError


def vocabulary(
    constructor: str, args: tuple[Any, ...], keywords: dict[str, Any], fingerprint: str
) -> _native.Vocabulary:
    """A vocabulary by the constructor that made it; it has to be the same as before."""
    made: _native.Vocabulary = getattr(_native.Vocabulary, constructor)(*args, **keywords)
    if made.fingerprint != fingerprint:
        raise VocabularyError(
            f"the vocabulary is not the one that was pickled: {args[0] if args else constructor} has the "
            f"fingerprint {made.fingerprint}, not {fingerprint}; was the file replaced?",
            kind="unsupported",
        )
    return made


def compiler(options: dict[str, Any]) -> _native.Compiler:
    """A compiler with these options."""
    return _native.Compiler(**options)


def language(options: dict[str, Any], source: str, format: Any, start: str | None) -> _native.Language:
    """A language, compiled again."""
    return _native.Compiler(**options).compile(source, format, start=start)


def constraint(language: _native.Language, vocabulary: _native.Vocabulary, tables: int) -> _native.Constraint:
    """A constraint, with cold tables."""
    return _native.Constraint(language, vocabulary, tables=tables)


def matcher(constraint: _native.Constraint, tokens: list[int], eos: list[int] | None) -> _native.Matcher:
    """An output that has these tokens again."""
    made = constraint.matcher(eos=eos)
    made.advance_all(tokens)
    return made


def canvas(
    slots: list[int | _native.Gap | None], end: Any, remaining: int | None, pinned: list[int]
) -> _native.Canvas:
    """A canvas of these slots."""
    made = _native.Canvas(slots, end, remaining=remaining)
    for slot in pinned:
        made.pin(slot)
    return made
