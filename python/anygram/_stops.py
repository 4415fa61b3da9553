"""Stop strings that outputs are kept from: what the adapters share.

A server cuts an output where a stop string first stands in it, also within constrained text. Who asks to
avoid that has the constraint of the texts in which none stands. No engine is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from anygram._errors import AnygramError
from anygram._native import Constraint

__all__ = ["avoiding", "check_stops"]


def _avoiding(constraint: Constraint, stops: tuple[str, ...]) -> Constraint:
    language = constraint.language.avoiding(stops)
    return Constraint(language, constraint.vocabulary, times=constraint.times, bound=constraint.bound)


_known = lru_cache(maxsize=32)(_avoiding)


def avoiding(constraint: Constraint, stops: Sequence[str]) -> Constraint:
    """The constraint without texts in which a stop string stands; the same for the same stop strings, whose
    masks are then known.

    >>> import anygram
    >>> language = anygram.Compiler().compile("[ab]{2}", "regex")
    >>> both = anygram.Constraint(language, anygram.Vocabulary.builtin())
    >>> avoiding(both, ["ab"]) is avoiding(both, ["ab"])
    True

    Raises:
        AnygramError: no text is left, or of this grammar it is not possible.
    """
    listed = tuple(sorted(set(stops)))
    return _known(constraint, listed) if listed else constraint


def check_stops(stops: Any) -> list[str]:
    """Stop strings as requests give them: one, a list, or none.

    Raises:
        AnygramError: they are something else, or one is empty.
    """
    if stops is None:
        return []
    listed: Any = [stops] if isinstance(stops, str) else stops
    if not isinstance(listed, (list, tuple)) or not all(
        isinstance(stop, str) and stop for stop in cast("Sequence[Any]", listed)
    ):
        raise AnygramError(f"stop strings are strings that are not empty, not {stops!r}")
    return list(cast("Sequence[str]", listed))
