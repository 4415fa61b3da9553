"""What the adapters of serving engines share: constraints of requests, compiled once, and outputs with the
stop tokens of their request. No engine is imported here, nor torch."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Literal, cast

import numpy as np

from anygram._errors import AnygramError, GrammarError
from anygram._native import Cancel, Compiler, Constraint, Language, MaskBuffer, Vocabulary

DEFAULTS: Mapping[str, Any] = {"key_order": "schema", "whitespace": {"at_most": 1}}
"""Options of the compiler in servers: what models write of themselves, and no way to fill an output up."""

OPTIONS_KEY = "x-anygram"
"""The key of a schema with options for this request."""

REQUEST_OPTIONS = frozenset({"key_order", "whitespace", "formats", "escapes", "extra_keys"})
"""The options of `Compiler` that a request may set: those that change what is allowed, not what it costs."""

ERROR_BYTES = 4096
"""What a remembered error counts as: it shows a part of the source."""

_RULE_OF_EBNF = re.compile(r"^[ \t]*[\w.-]+[ \t]*::=", re.MULTILINE)


class Constraints:
    """Constraints of requests over one vocabulary, each compiled once.

    Equal requests that come while one compiles wait for it. Grammars with errors are remembered, reached
    limits and cancelled compilations are not. The least recently used go when there are too many of them, or
    when they have too many bytes; requests that use them go on.

    >>> import anygram
    >>> constraints = Constraints(anygram.Vocabulary.builtin())
    >>> constraints.get("choice", '["yes", "no"]') is constraints.get("choice", '["yes", "no"]')
    True
    >>> constraints.stats["compiled"], constraints.stats["hits"]
    (1, 1)

    Args:
        vocabulary: the tokens of the model.
        options: of `Compiler`, over the defaults of servers.
        max_entries: how many constraints are kept.
        max_bytes: how many bytes they may have together, with what masks taught them. The one that came last
            is kept in any case.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        options: Mapping[str, Any] | None = None,
        *,
        max_entries: int = 512,
        max_bytes: int = 1 << 30,
    ) -> None:
        self.vocabulary = vocabulary
        self.options = {**DEFAULTS, **(options or {})}
        for name, bound in (("max_entries", max_entries), ("max_bytes", max_bytes)):
            if type(bound) is not int or bound < 0:
                raise AnygramError(f"{name} is {bound!r}; give a number from 0 on")
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Future[Constraint]] = OrderedDict()
        self._cancel = Cancel()
        self._n = {"compiled": 0, "hits": 0, "joined": 0, "errors": 0, "evicted": 0}
        # Wrong options are an error of the server when it starts, not of its requests.
        _compiler(self.options)

    def get(self, kind: str, source: str) -> Constraint:
        """The constraint of a request. Compiles on this thread if no other does.

        Args:
            kind: `json`, `json_object`, `regex`, `grammar` (Lark's notation or EBNF), or `choice` (a JSON
                array of strings).
            source: the text.

        Raises:
            GrammarError: the source has an error.
            LimitError: it needs more than the limits allow.
            AnygramError: it is of a kind, or has options, that are not supported.
        """
        key = (kind, source)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                mine = self._known[key] = Future[Constraint]()
                self._n["compiled"] += 1
            else:
                mine = None
                self._known.move_to_end(key)
                self._n["hits" if known.done() else "joined"] += 1
        if known is not None:
            error = known.exception()
            if error is None:
                return known.result()
            # The same error may be raised on several threads.
            raise error.with_traceback(None)
        assert mine is not None
        try:
            constraint = Constraint(self._compile(kind, source), self.vocabulary)
        except BaseException as error:
            with self._lock:
                self._n["errors"] += 1
                if not isinstance(error, GrammarError) and self._known.get(key) is mine:
                    del self._known[key]
            mine.set_exception(error)
            self._evict()
            raise
        mine.set_result(constraint)
        self._evict()
        return constraint

    def close(self) -> None:
        """Cancels what compiles, and forgets everything."""
        self._cancel.cancel()
        with self._lock:
            self._known.clear()

    @property
    def stats(self) -> dict[str, int]:
        """How many requests compiled, found a constraint, joined another request or failed, how many
        constraints were forgotten, how many are there and their bytes."""
        with self._lock:
            known = list(self._known.values())
            counted = dict(self._n)
        return {**counted, "entries": len(known), "bytes": sum(map(_bytes_of, known))}

    def _evict(self) -> None:
        with self._lock:
            # Constraints grow while masks are computed, so all are asked again.
            sizes = {key: _bytes_of(future) for key, future in self._known.items()}
            total = sum(sizes.values())
            for key, size in sizes.items():
                if len(self._known) <= max(self._max_entries, 1) and total <= self._max_bytes:
                    break
                if len(self._known) == 1 or not self._known[key].done():
                    continue
                del self._known[key]
                total -= size
                self._n["evicted"] += 1

    def _compile(self, kind: str, source: str) -> Language:
        if kind == "json":
            text, options = _schema(source)
            return _compiler({**self.options, **options}).compile(text, "json-schema", cancel=self._cancel)
        compiler = _compiler(self.options)
        if kind == "json_object":
            return compiler.compile({"type": "object"}, "json-schema", cancel=self._cancel)
        if kind == "regex":
            return compiler.compile(source, "regex", cancel=self._cancel)
        if kind == "choice":
            return compiler.compile(_choice(source), "lark", cancel=self._cancel)
        if kind == "grammar":
            form: Literal["ebnf", "lark"] = "ebnf" if _RULE_OF_EBNF.search(source) else "lark"
            return compiler.compile(source, form, cancel=self._cancel)
        raise unsupported(kind)


class Output:
    """The state of one output: a matcher, and the stop tokens of its request.

    Special tokens end an output as EOS does. A stop token that has bytes ends it, too, and is allowed only
    where the output is complete: elsewhere it would cut it.

    >>> import anygram
    >>> vocabulary = anygram.Vocabulary.builtin()
    >>> output = Output(Constraints(vocabulary).get("choice", '["yes", "no"]'), None)
    >>> for token in [*vocabulary.encode("yes"), vocabulary.eos[0]]:
    ...     output.accept(token)
    >>> output.has_ended
    True
    >>> output.rollback(1)
    >>> output.has_ended
    False
    """

    __slots__ = ("error", "matcher", "_has_stopped", "_ordinary", "_special")

    error: AnygramError | None
    """Why there is no mask, if the last one failed: only stop tokens were allowed then."""

    def __init__(self, constraint: Constraint, stops: Iterable[int] | None) -> None:
        vocabulary = constraint.vocabulary
        given = list(vocabulary.eos if stops is None else stops)
        ids = [id for id in given if 0 <= id < len(vocabulary)]
        self._special = [id for id in ids if vocabulary.is_special(id)]
        self._ordinary = [id for id in ids if not vocabulary.is_special(id)]
        if not ids:
            raise AnygramError(f"no token of the vocabulary ends the output: its stop tokens are {given}")
        self.matcher = constraint.matcher(eos=self._special)
        self.error = None
        self._has_stopped = False

    def copy(self) -> Output:
        """The same state, for another request."""
        made = object.__new__(Output)
        made.matcher = self.matcher.fork()
        made._special, made._ordinary = self._special, self._ordinary
        made._has_stopped, made.error = self._has_stopped, self.error
        return made

    @property
    def has_ended(self) -> bool:
        """Whether a stop token was accepted."""
        return self._has_stopped or self.matcher.has_ended

    def accept(self, token: int) -> None:
        """Appends a token; nothing happens after the end.

        Raises:
            AnygramError: the token may not come next, or there was no mask.
        """
        if self.error is not None:
            raise self.error
        if self.has_ended:
            return
        if token in self._ordinary and self.matcher.is_sentence:
            self._has_stopped = True
        else:
            self.matcher.advance(token)

    def validate(self, tokens: list[int]) -> int:
        """How many of the tokens could be appended; tokens after the end are none."""
        if self.has_ended or self.error is not None:
            return 0
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
        self.error = None
        if n > 0 and self._has_stopped:
            self._has_stopped = False
            n -= 1
        if n > 0:
            self.matcher.rollback(n)

    def reset(self) -> None:
        """Takes all tokens back."""
        self.error = None
        self._has_stopped = False
        self.matcher.reset()

    def fill(self, array: Any, buffer: MaskBuffer, row: int) -> None:
        """Writes the mask of what may come next. `buffer` is that of `array`, of 32-bit words.

        Where there is no mask, only stop tokens are allowed: one request fails, and not the batch.
        """
        try:
            self.matcher.fill_mask(buffer, row)
        except AnygramError as error:
            self.fail(array, row, error)
        else:
            self.correct(array, row)

    def correct(self, array: Any, row: int) -> None:
        """Makes stop tokens with bytes what they are in a mask that was just filled."""
        if not self._ordinary:
            return
        words = array[row].view(np.uint32)
        is_sentence = self.matcher.is_sentence
        for token in self._ordinary:
            _set(words, token, is_sentence)
        if not words.any():
            reason = "only a stop token could come next, where the output is not complete"
            self.fail(array, row, AnygramError(reason, kind="unsatisfiable"))

    def fail(self, array: Any, row: int, error: AnygramError) -> None:
        """Allows only stop tokens: the output ends, and `accept` says why."""
        self.error = error
        words = array[row].view(np.uint32)
        words[:] = 0
        for token in (*self._special, *self._ordinary):
            _set(words, token, True)


def unsupported(kind: str) -> AnygramError:
    """The refusal of a kind of request."""
    reason = f"Anygram does not constrain by {kind}"
    if kind == "structural_tag":
        reason += " yet: give a JSON schema, or a grammar with the tags in it"
    return AnygramError(reason, kind="unsupported")


def _compiler(options: Mapping[str, Any]) -> Compiler:
    try:
        return Compiler(**options)
    except TypeError as error:
        raise AnygramError(f"options that the compiler does not take: {error}") from error


def _schema(source: str) -> tuple[str, dict[str, Any]]:
    """A schema without the options of the request, and these."""
    if f'"{OPTIONS_KEY}"' not in source:
        return source, {}
    try:
        schema = json.loads(source)
    except ValueError:
        # The compiler says where the error is.
        return source, {}
    if not isinstance(schema, dict) or OPTIONS_KEY not in schema:
        return source, {}
    rest = cast("dict[str, Any]", schema)
    options: Any = rest.pop(OPTIONS_KEY)
    if not isinstance(options, dict) or not cast("dict[str, Any]", options).keys() <= REQUEST_OPTIONS:
        raise AnygramError(
            f"`{OPTIONS_KEY}` of a schema is an object with {', '.join(sorted(REQUEST_OPTIONS))}"
        )
    return json.dumps(rest, ensure_ascii=False), cast("dict[str, Any]", options)


def _choice(source: str) -> str:
    """The grammar of a JSON array of texts."""
    try:
        texts: Any = json.loads(source)
    except ValueError as error:
        raise GrammarError(f"choices are a JSON array of strings: {error}") from error
    listed = cast("list[Any]", texts) if isinstance(texts, list) else []
    if not listed or not all(isinstance(text, str) for text in listed):
        raise GrammarError("choices are a JSON array of at least one string")
    different: dict[str, None] = dict.fromkeys(listed)
    return "%lexer scannerless\nstart: " + "\n  | ".join(map(_literal, different))


def _literal(text: str) -> str:
    def escaped(char: str) -> str:
        if char in '"\\':
            return "\\" + char
        return char if char.isprintable() else f"\\U{ord(char):08x}"

    return '"' + "".join(map(escaped, text)) + '"'


def _bytes_of(future: Future[Constraint]) -> int:
    if not future.done():
        return 0
    if future.exception() is not None:
        return ERROR_BYTES
    constraint = future.result()
    return constraint.memory_usage


def _set(words: Any, token: int, allowed: bool) -> None:
    bit = np.uint32(1 << token % 32)
    if allowed:
        words[token // 32] |= bit
    else:
        words[token // 32] &= ~bit
