"""The C API by `ctypes`, as far as the tests ask it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_bool, c_char_p, c_int8, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import anygram
import pytest
from conftest import ROOT

OK, SYNTAX, UNSATISFIABLE, UNDECIDED, REFUSED, UNKNOWN_TOKEN = 0, 1, 3, 5, 7, 8
REFUSALS = range(1, 5)
"""A grammar is wrong, not supported or without sentences, or a limit was reached."""
NO_TOKEN = 2**32 - 1
HOLE, GAP = -1, -2
ANSWERS = {1: True, 0: False, -1: None}


class Special(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("eos", POINTER(c_uint32)),
        ("n_eos", c_size_t),
        ("pad", c_uint32),
        ("mask", c_uint32),
        ("names", c_void_p),
        ("n_names", c_size_t),
    ]


class Canvas(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("slots", POINTER(c_int64)),
        ("n_slots", c_size_t),
        ("end", c_uint32),
        ("remaining", c_int64),
    ]


class Option(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class Refused(Exception):
    """A function of C returned a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def library() -> ctypes.CDLL:
    """The library that `cargo xtask python` builds."""
    name = {"darwin": "libanygram_c.dylib", "win32": "anygram_c.dll"}.get(sys.platform, "libanygram_c.so")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = Path(os.environ.get("ANYGRAM_C_LIBRARY", target / "release" / name))
    if not found.exists():
        pytest.fail(f"{found} is not there: run `cargo build --release -p anygram-capi`")
    return ctypes.CDLL(str(found))


class Handles:
    """Calls functions, and frees in the end what they made."""

    def __init__(self) -> None:
        self._library = library()
        self._made: list[tuple[str, c_void_p]] = []

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, *_: object) -> None:
        for kind, handle in reversed(self._made):
            self.call(f"{kind}_free", handle)

    def call(self, name: str, *arguments: Any) -> None:
        """A function whose last argument is the error, which is left out."""
        function: Callable[..., int] = getattr(self._library, f"anygram_{name}")
        code = function(*arguments, None)
        if code != OK:
            raise Refused(code)

    def make(self, kind: str, function: str, *arguments: Any) -> c_void_p:
        handle = c_void_p()
        self.call(function, *arguments, byref(handle))
        self._made.append((kind, handle))
        return handle

    def constraint(
        self,
        source: str,
        format: str,
        lexer: str | None,
        tokens: Sequence[bytes | None],
    ) -> c_void_p:
        """A language with a vocabulary whose last token is EOS."""
        data = source.encode()
        options = (Option * 1)(Option(b"lexer", (lexer or "").encode()))
        language = self.make(
            "language",
            "compile",
            format.encode(),
            data,
            c_size_t(len(data)),
            options,
            c_size_t(1 if lexer else 0),
            None,
        )
        parts = [token or b"" for token in tokens]
        ends = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
        eos = (c_uint32 * 1)(len(tokens) - 1)
        special = Special(ctypes.sizeof(Special), eos, 1, NO_TOKEN, NO_TOKEN, None, 0)
        vocabulary = self.make(
            "vocabulary",
            "vocabulary_from_tokens",
            b"".join(parts),
            (c_size_t * len(ends))(*ends),
            c_size_t(len(parts)),
            byref(special),
        )
        return self.make("constraint", "constraint_new", language, vocabulary)

    def mask(
        self, constraint: c_void_p, n_tokens: int, tokens: Sequence[int], budget: int | None
    ) -> dict[str, Any]:
        """What `batch` answers to the question `mask`."""
        matcher = self.make("matcher", "matcher_new", constraint)
        self.call("matcher_advance_all", matcher, (c_uint32 * len(tokens))(*tokens), c_size_t(len(tokens)))
        n_words = n_tokens // 32 + 2
        words = (c_uint32 * n_words)()
        if budget is None:
            self.call("matcher_mask", matcher, words, c_size_t(n_words))
        else:
            self.call("matcher_mask_with_budget", matcher, c_uint32(budget), words, c_size_t(n_words))
        is_sentence = c_bool()
        self.call("matcher_state", matcher, byref(is_sentence), None, None)
        return {"allowed": [id for id in members(words) if id != n_tokens - 1], "eos": is_sentence.value}

    def canvas(
        self, solver: c_void_p, n_tokens: int, slots: Sequence[Any], end: str, is_unknown: bool
    ) -> dict[str, Any]:
        """What `batch` answers to the question `canvas`; whether the minimum is not known."""
        ids = [HOLE if slot is None else GAP if slot is anygram.GAP else slot for slot in slots]
        given = Canvas(
            ctypes.sizeof(Canvas), (c_int64 * len(ids))(*ids), len(ids), ["sentence", "prefix"].index(end), -1
        )
        answer = c_int8()
        self.call("solver_completable", solver, byref(given), byref(answer), None, c_size_t(0), None)
        n_holes, n_words = ids.count(HOLE), n_tokens // 32 + 1
        words, undecided = (c_uint32 * (n_holes * n_words + 1))(), (c_bool * (n_holes + 1))()
        size = c_size_t(n_words)
        self.call(
            "solver_admissible", solver, byref(given), words, c_size_t(n_holes), size, size, undecided
        )
        rows = [list(words)[at * n_words : (at + 1) * n_words] for at in range(n_holes)]
        fewest, minimum = c_size_t(), None
        try:
            self.call("solver_minimum", solver, byref(given), byref(fewest))
            minimum = fewest.value
        except Refused as refused:
            # Not known exactly where the package does not know it.
            assert refused.code == (UNDECIDED if is_unknown else UNSATISFIABLE), refused
        return {
            "completable": ANSWERS[answer.value],
            "admissible": [
                None if unknown else members(row)
                for row, unknown in zip(rows, list(undecided)[:n_holes], strict=True)
            ],
            "minimum": minimum,
        }


def members(words: Sequence[int]) -> list[int]:
    """The tokens of a mask."""
    return [32 * at + bit for at, word in enumerate(words) for bit in range(32) if word >> bit & 1]
