"""What the adapters of serving engines share: outputs with the stop tokens and the budget of their request.
No engine is imported here, nor torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from anygram._ahead import WorkAhead
from anygram._errors import AnygramError, LimitError
from anygram._native import Constraint, MaskBuffer, Matcher, Vocabulary, fill_masks

Tell = Callable[[AnygramError], AnygramError]
"""How an error is shown: without the text of outputs, unless asked."""


class Output:
    """The state of one output: a matcher, and the stop tokens of its request.

    Special tokens end an output as EOS does. A stop token that has bytes ends it, too, and is allowed only
    where the output is complete: elsewhere it would cut it.

    >>> import anygram
    >>> from anygram.serving import CompileService
    >>> vocabulary = anygram.Vocabulary.builtin()
    >>> output = Output(CompileService(vocabulary).get("choice", '["yes", "no"]').constraint, None)
    >>> for token in [*vocabulary.encode("yes"), vocabulary.eos[0]]:
    ...     output.accept(token)
    >>> output.has_ended
    True
    >>> output.rollback(1)
    >>> output.has_ended
    False

    Args:
        constraint: what the text is.
        stops: the tokens that end it; `None` are those of the vocabulary.
        tell: how errors are shown.
        tick: called every 64 tokens, for the memory of what compiled it.
        ahead: what computes masks ahead, if anything does.
    """

    __slots__ = (
        "close_from",
        "error",
        "has_ended",
        "limit",
        "matcher",
        "n_new",
        "n_tokens",
        "_ahead",
        "_has_stopped",
        "_ordinary",
        "_special",
        "_tell",
        "_tick",
    )

    error: AnygramError | None
    """Why there is no mask, if the last one failed: only stop tokens were allowed then."""
    limit: int | None
    """The most tokens of text that the output may have; masks allow only what can be closed within it."""
    close_from: int
    """How many of them are left when masks begin to see to that."""
    n_tokens: int
    """Tokens of text so far."""
    has_ended: bool
    """Whether a stop token was accepted."""
    n_new: int
    """As `WorkAhead` counts."""

    def __init__(
        self,
        constraint: Constraint,
        stops: Iterable[int] | None,
        tell: Tell | None = None,
        tick: Callable[[], None] | None = None,
        ahead: WorkAhead | None = None,
    ) -> None:
        vocabulary = constraint.vocabulary
        given = list(vocabulary.eos if stops is None else stops)
        ids = [id for id in given if 0 <= id < len(vocabulary)]
        self._special = [id for id in ids if vocabulary.is_special(id)]
        self._ordinary = [id for id in ids if not vocabulary.is_special(id)]
        if not ids:
            raise AnygramError(f"no token of the vocabulary ends the output: its stop tokens are {given}")
        self.matcher: Matcher = constraint.matcher(eos=self._special)
        self.error = None
        self.limit = None
        self.close_from = sys.maxsize
        self.n_tokens = 0
        self.has_ended = self._has_stopped = False
        self._tell, self._tick = tell, tick
        self._ahead, self.n_new = ahead, 0

    @property
    def closes(self) -> bool:
        """Whether the next mask has to see to it that the output can be closed within its limit."""
        return self.limit is not None and self.limit - self.n_tokens <= self.close_from

    def copy(self) -> Output:
        """The same state, for another request."""
        self.stop_ahead()
        made = object.__new__(Output)
        made.matcher = self.matcher.fork()
        made._special, made._ordinary = self._special, self._ordinary
        made._tell, made._tick = self._tell, self._tick
        made._ahead, made.n_new = self._ahead, self.n_new
        made._has_stopped, made.has_ended, made.error = self._has_stopped, self.has_ended, self.error
        made.limit, made.close_from, made.n_tokens = self.limit, self.close_from, self.n_tokens
        return made

    def accept(self, token: int) -> None:
        """Appends a token; nothing happens after the end.

        Raises:
            AnygramError: the token may not come next, or there was no mask.
        """
        if self.error is not None:
            raise self.error
        if self.has_ended:
            return
        self.stop_ahead()
        if token in self._ordinary and self.matcher.is_sentence:
            self.has_ended = self._has_stopped = True
            return
        try:
            self.matcher.advance(token)
        except AnygramError as error:
            if self._tell is None:
                raise
            # Not from the error: a traceback would show its text.
            raise self._tell(error) from None
        self.n_tokens += 1
        if token in self._special:
            self.has_ended = True
        if not self.n_tokens % 64 and self._tick is not None:
            self._tick()

    def validate(self, tokens: list[int]) -> int:
        """How many of the tokens could be appended; tokens after the end are none."""
        if self.has_ended or self.error is not None:
            return 0
        self.stop_ahead()
        if not self._ordinary:
            return self.matcher.validate(tokens)
        trial = self.copy()
        for n, token in enumerate(tokens):
            if trial.has_ended:
                return n
            try:
                trial.accept(token)
            except AnygramError:
                return n
        return len(tokens)

    def rollback(self, n: int) -> None:
        """Takes back the last `n` tokens that were accepted."""
        self.stop_ahead()
        self.error = None
        if n > 0 and self._has_stopped:
            self._has_stopped = False
            n -= 1
        if n > 0:
            self.matcher.rollback(n)
            self.n_tokens -= n
        self.has_ended = self._has_stopped or self.matcher.has_ended

    def reset(self) -> None:
        """Takes all tokens back."""
        self.stop_ahead()
        self.error = None
        self.has_ended = self._has_stopped = False
        self.n_tokens = 0
        self.matcher.reset()

    def go_to(self, tokens: list[int]) -> None:
        """Makes the output have exactly these tokens."""
        self.stop_ahead()
        self.error = None
        self._has_stopped = False
        try:
            self.matcher.go_to(tokens)
        finally:
            self.n_tokens = len(self.matcher.tokens)
            self.has_ended = self.matcher.has_ended

    def fill(self, array: Any, buffer: Any, row: int) -> None:
        """Writes the mask of what may come next. `buffer` is that of `array`, of 32-bit words.

        Where there is no mask, only stop tokens are allowed: one request fails, and not the batch.
        """
        self.stop_ahead()
        closes = self.closes
        try:
            if self.limit is None or not closes:
                self.matcher.fill_mask(buffer, row)
            else:
                self.matcher.fill_mask(buffer, row, budget=max(0, self.limit - self.n_tokens))
        except AnygramError as error:
            self.fail(array, row, error)
        else:
            if closes or self._ordinary:
                self._correct(array, row)
        if self._ahead is not None:
            self._ahead.begin([self])

    def stop_ahead(self) -> None:
        """Called before anything is done with the matcher: it does not wait for masks that nobody asked for."""
        if self._ahead is not None:
            self._ahead.stop(self)

    @staticmethod
    def fill_all(outputs: Sequence[Output], array: Any, buffer: MaskBuffer, rows: Sequence[int]) -> None:
        """The masks of many outputs, as `fill`; those that have to be computed on several threads."""
        together: list[tuple[Output, int]] = []
        for output, row in zip(outputs, rows):
            output.stop_ahead()
            if output.closes:
                output.fill(array, buffer, row)
            else:
                together.append((output, row))
        failed = fill_masks(
            [output.matcher for output, _ in together], buffer, [row for _, row in together]
        )
        for (output, row), error in zip(together, failed):
            if error is None:
                if output._ordinary:
                    output._correct(array, row)
            elif isinstance(error, AnygramError):
                output.fail(array, row, error)
            else:
                raise error
        # Those of one service, mostly.
        by_service: dict[WorkAhead, list[Output]] = {}
        for output, _ in together:
            if output._ahead is not None:
                by_service.setdefault(output._ahead, []).append(output)
        for ahead, begun in by_service.items():
            ahead.begin(begun)

    def _correct(self, array: Any, row: int) -> None:
        """Makes stop tokens with bytes what they are in a mask that was just filled, and sees to it that some
        token is allowed."""
        words = array[row].view(np.uint32)
        if self._ordinary:
            is_sentence = self.matcher.is_sentence
            for token in self._ordinary:
                _set(words, token, is_sentence)
        if words.any() or self.has_ended:
            return
        if self.limit is not None:
            reason = f"no complete output is within the {self.limit} tokens that the request has"
            error: AnygramError = LimitError(reason, name="max_tokens", value=self.limit)
        else:
            reason = "only a stop token could come next, where the output is not complete"
            error = AnygramError(reason, kind="unsatisfiable")
        self.fail(array, row, error)

    def fail(self, array: Any, row: int, error: AnygramError) -> None:
        """Allows only stop tokens: the output ends, and `accept` says why."""
        self.error = error if self._tell is None else self._tell(error)
        words = array[row].view(np.uint32)
        words[:] = 0
        for token in (*self._special, *self._ordinary):
            _set(words, token, True)


def is_switched_on(variable: str) -> bool:
    """Whether a variable of the environment is 1, and not 0 or missing.

    Raises:
        AnygramError: it is something else.
    """
    value = os.environ.get(variable, "")
    if value not in ("", "0", "1"):
        raise AnygramError(f"{variable} is {value!r}: 1 switches Anygram on, 0 off")
    return value == "1"


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """The tokens of a tokenizer, which may be a vocabulary already.

    Raises:
        VocabularyError: it is of a kind that is not read.
    """
    return tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary.from_tokenizer(tokenizer)


def check_budget(output: Output, limit: int, close_from: int = sys.maxsize) -> None:
    """Gives an output a limit of tokens, and from how many on that are left masks see to it.

    Raises:
        LimitError: no complete output is within it.
    """
    output.limit, output.close_from = limit, close_from
    if limit <= close_from and not output.matcher.mask(budget=max(0, limit)).any():
        reason = f"no complete output is within the {limit} tokens that the request has"
        raise LimitError(reason, name="max_tokens", value=limit)


def _set(words: Any, token: int, allowed: bool) -> None:
    bit = np.uint32(1 << token % 32)
    if allowed:
        words[token // 32] |= bit
    else:
        words[token // 32] &= ~bit
