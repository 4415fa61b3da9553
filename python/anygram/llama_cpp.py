"""Constrained generation with llama-cpp-python: a logits processor.

    llm = llama_cpp.Llama("model.gguf")
    constraint = anygram.Constraint(anygram.Compiler().compile(MySchema, "json-schema"),
                                    anygram.llama_cpp.vocabulary(llm))
    processors = anygram.llama_cpp.Processors(constraint, max_tokens=200)
    llm("Write a person: ", max_tokens=200, logits_processor=processors)

llama_cpp is imported by `vocabulary` alone.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterable
from typing import Any

from anygram._native import Constraint, Vocabulary
from anygram.transformers import ConstraintProcessor

__all__ = ["Processors", "vocabulary"]

_NO_TEXT = 1 | 2 | 8
"""Attributes of tokens that write nothing: unknown, unused, control (`llama_token_attr` of llama.h)."""


def vocabulary(llm: Any) -> Vocabulary:
    """The tokens of a `llama_cpp.Llama`; those that end its texts are EOS."""
    llama: Any = importlib.import_module("llama_cpp")
    vocab = llama.llama_model_get_vocab(llm.model)
    tokens: list[bytes | None] = []
    eos: list[int] = []
    names: dict[int, str] = {}
    for token in range(llama.llama_vocab_n_tokens(vocab)):
        piece = _piece(llama, vocab, token)
        ends = bool(llama.llama_vocab_is_eog(vocab, token))
        if ends:
            eos.append(token)
        if ends or llama.llama_vocab_get_attr(vocab, token) & _NO_TEXT:
            # The text of a special token is its name.
            names[token] = piece.decode("utf-8", "replace")
            tokens.append(None)
        else:
            tokens.append(piece)
    return Vocabulary.from_tokens(tokens, eos, names={token: name for token, name in names.items() if name})


def _piece(llama: Any, vocab: Any, token: int) -> bytes:
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = int(llama.llama_token_to_piece(vocab, token, buffer, size, 0, True))
        if length >= 0:
            return buffer.raw[:length]
        size = -length


class _Row(ConstraintProcessor):
    """As llama-cpp-python calls processors: with one row."""

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return super().__call__(input_ids[None], scores[None])[0]


class Processors(list[Any]):
    """What `logits_processor` takes: a list with the processor of a constraint.

    `Llama` given `logit_bias` too replaces a list of processors by what its `extend` returns (0.3), which is
    nothing for a list of Python: the constraint would be gone without a word. This one returns itself.

    Args:
        constraint: what outputs have to be.
        max_tokens: what `Llama` is given. Then every output is a sentence when it gets there.
        avoid: stop strings (`stop`): outputs that would have one in them are not allowed, so none is cut within
            constrained text.
        others: processors that come after it.
    """

    def __init__(
        self,
        constraint: Constraint,
        *,
        max_tokens: int | None = None,
        avoid: str | Iterable[str] | None = None,
        others: Iterable[Any] = (),
    ) -> None:
        super().__init__([_Row(constraint, max_new_tokens=max_tokens, avoid=avoid), *others])

    def extend(self, others: Iterable[Any]) -> Any:
        """As a list does; returns itself."""
        super().extend(others)
        return self

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores after all processors."""
        for processor in self:
            scores = processor(input_ids, scores)
        return scores
