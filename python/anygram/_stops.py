"""Stop strings that outputs are kept from: what the adapters share.

A server cuts an output where a stop string first stands in it, also within constrained text. Who asks to avoid
that has masks that leave out what would complete one. No engine is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

from anygram._errors import AnygramError
from anygram._native import Compiler, Constraint, Matcher, Vocabulary

__all__ = ["Avoided", "StopStrings", "avoided", "check_stops"]


class StopStrings:
    """What outputs on a vocabulary are kept from: texts, over bytes, however tokens straddle them."""

    def __init__(self, vocabulary: Vocabulary, stops: Sequence[str]) -> None:
        self.stops = tuple(stops)
        free = {"type": "any_text", "excludes": list(self.stops)}
        self._free = _free_text(free, vocabulary).matcher()
        # Special tokens write nothing, so they complete nothing.
        self._special = ~_free_text({"type": "any_text"}, vocabulary).matcher().mask()
        self._is_special = vocabulary.is_special

    def begin(self) -> Avoided:
        """A new output."""
        return Avoided(self, self._free.fork(), [0])

    def mask(self, matcher: Matcher) -> Any:
        """The tokens that complete no stop string behind a text."""
        return matcher.mask() | self._special

    def is_special(self, token: int) -> bool:
        """Whether a token writes nothing."""
        return self._is_special(token)


class Avoided:
    """One output that is kept from stop strings.

    >>> import anygram
    >>> vocabulary = anygram.Vocabulary.builtin()
    >>> output = avoided(vocabulary, ["ab"]).begin()
    >>> a, b = vocabulary.encode("a")[0], vocabulary.encode("b")[0]
    >>> output.push(a)
    >>> output.push(b)
    Traceback (most recent call last):
    ...
    anygram.AnygramError: the token completes a stop string
    >>> output.pop(1)
    >>> output.push(b)
    """

    __slots__ = ("_matcher", "_n_written", "_stops")

    def __init__(self, stops: StopStrings, matcher: Matcher, n_written: list[int]) -> None:
        self._stops = stops
        self._matcher = matcher
        # How many of the first tokens have text.
        self._n_written = n_written

    @property
    def n_tokens(self) -> int:
        """Tokens so far."""
        return len(self._n_written) - 1

    def copy(self) -> Avoided:
        """The same state, on its own."""
        return Avoided(self._stops, self._matcher.fork(), list(self._n_written))

    def push(self, token: int) -> None:
        """Appends a token.

        Raises:
            AnygramError: it completes a stop string.
        """
        is_special = self._stops.is_special(token)
        if not is_special and not self._matcher.try_advance([token]):
            raise AnygramError("the token completes a stop string", kind="refused")
        self._n_written.append(self._n_written[-1] + (not is_special))

    def pop(self, n: int) -> None:
        """Takes tokens back."""
        if n > 0:
            written = self._n_written.pop()
            del self._n_written[len(self._n_written) - (n - 1) :]
            self._matcher.rollback(written - self._n_written[-1])

    def reset(self) -> None:
        """Takes all tokens back."""
        self.pop(len(self._n_written) - 1)

    def narrow(self, words: Any) -> None:
        """Takes what completes a stop string out of a mask of 32-bit words."""
        mask = self._stops.mask(self._matcher)
        words[: len(mask)] &= mask[: len(words)]


def _free_text(format: dict[str, Any], vocabulary: Vocabulary) -> Constraint:
    return Constraint(Compiler().compile({"format": format}, "structural-tag"), vocabulary)


_known = lru_cache(maxsize=32)(StopStrings)


def avoided(vocabulary: Vocabulary, stops: Iterable[str]) -> StopStrings:
    """The same stop strings on the same vocabulary share what they compute."""
    return _known(vocabulary, tuple(sorted(set(stops))))


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
