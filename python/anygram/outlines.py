"""Structured outputs of Outlines: its back end `anygram`.

    import anygram.outlines, outlines

    anygram.outlines.register()
    generator = outlines.Generator(model, MyModel, backend="anygram")

`register` makes the name known. `Backend` has the three methods that Outlines asks of a back end, also for
use without the name: `outlines.generator.SteerableGenerator.from_processor(model, processor)`. Written for
Outlines 1.3.

Outlines is imported by `register` and by the methods of `Backend` alone, torch by Outlines.
"""

from __future__ import annotations

import functools
import importlib
import re
import threading
import weakref
from typing import Any

import numpy as np

from anygram._errors import AnygramError
from anygram._native import Constraint, Vocabulary
from anygram._serving import vocabulary_of
from anygram.serving import CompileService
from anygram.transformers import ConstraintProcessor

__all__ = ["Backend", "register"]

NAME = "anygram"
"""What `backend=` takes."""

_AT_MOST = re.compile(r"(?:\[ \]| )(?:\?|\{0,(\d+)\})")

_services: weakref.WeakKeyDictionary[Any, CompileService] = weakref.WeakKeyDictionary()
"""By tokenizers: Outlines makes a back end for each generator."""

_lock = threading.Lock()


def register() -> None:
    """Makes the name `anygram` known to Outlines. A second call changes nothing.

    Raises:
        AnygramError: this Outlines makes its back ends in another way.
    """
    backends: Any = importlib.import_module("outlines.backends")
    make: Any = getattr(backends, "_get_backend", None)
    if make is None:
        raise AnygramError(
            "outlines.backends has no _get_backend: this adapter is for Outlines 1.3", kind="unsupported"
        )
    if hasattr(make, "anygram"):
        return
    backends.BaseBackend.register(Backend)

    @functools.wraps(make)
    def get_backend(backend_name: str, model: Any) -> Any:
        return Backend(model) if backend_name == NAME else make(backend_name, model)

    get_backend.anygram = True  # type: ignore[attr-defined]
    backends._get_backend = get_backend


class Backend:
    """Makes logits processors: Outlines' `BaseBackend`.

    Args:
        model: a model of Outlines: of transformers or MLX. For another one, such as llama.cpp's, give its
            vocabulary.
        vocabulary: the tokens of the model, if they are not read from its tokenizer.
        max_new_tokens: the most tokens of an output; with it every output is complete when it gets there.
        service: options of `CompileService`, for the first back end of a tokenizer.

    Raises:
        VocabularyError: the tokenizer is of a kind that is not read.
    """

    def __init__(
        self,
        model: Any,
        vocabulary: Vocabulary | None = None,
        *,
        max_new_tokens: int | None = None,
        **service: Any,
    ) -> None:
        self.tensor_library: str = model.tensor_library_name
        self.max_new_tokens = max_new_tokens
        source = _tokenizer(model) if vocabulary is None else vocabulary
        with _lock:
            known = None if service else _services.get(source)
            if known is None:
                read = vocabulary_of(source)
                known = _services[source] = CompileService(read, **service)
        self.service = known

    def get_json_schema_logits_processor(
        self, json_schema: str, whitespace_pattern: str | None = None
    ) -> Any:
        """A processor for a JSON schema.

        Args:
            json_schema: the schema. One request changes its options by the key `x-anygram`.
            whitespace_pattern: the blanks between parts: `None` is at most one, an empty pattern none, and
                ` ?`, `[ ]?` or ` {0,n}` at most one or n.

        Raises:
            GrammarError: the schema cannot be used.
            AnygramError: it is another pattern of blanks.
        """
        options = None if whitespace_pattern is None else {"whitespace": _whitespace(whitespace_pattern)}
        return self._processor(self.service.get("json", json_schema, options).constraint)

    def get_regex_logits_processor(self, regex: str) -> Any:
        """A processor for a regular expression of the whole output. Raises `GrammarError`."""
        return self._processor(self.service.get("regex", regex).constraint)

    def get_cfg_logits_processor(self, grammar: str) -> Any:
        """A processor for a grammar in Lark's notation or EBNF. Raises `GrammarError`."""
        return self._processor(self.service.get("grammar", grammar).constraint)

    def _processor(self, constraint: Constraint) -> Any:
        base: Any = importlib.import_module("outlines.processors.base_logits_processor")
        kind: Any = type("AnygramLogitsProcessor", (_Processor, base.OutlinesLogitsProcessor), {})
        return kind(constraint, self.tensor_library, self.max_new_tokens)


class _Processor:
    """What Outlines' `OutlinesLogitsProcessor` leaves to its subclasses."""

    def __init__(self, constraint: Constraint, tensor_library: str, max_new_tokens: int | None) -> None:
        super().__init__(tensor_library)  # type: ignore[call-arg]
        self._library = tensor_library
        self.processor = ConstraintProcessor(constraint, max_new_tokens=max_new_tokens)

    def reset(self) -> None:
        """Called by Outlines before each generation."""
        self.processor.reset()

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Called by Outlines in each step: the logits, with those of tokens that are not allowed at minus
        infinity. Raises as `ConstraintProcessor`."""
        if self._library != "mlx":
            return self.processor(input_ids, logits)
        # MLX: masks are applied to a copy in numpy, which has no bfloat16.
        mlx: Any = importlib.import_module("mlx.core")
        scores = np.array(logits.astype(mlx.float32))
        return mlx.array(self.processor(np.array(input_ids), scores)).astype(logits.dtype)


def _tokenizer(model: Any) -> Any:
    """The tokenizer of a model of Outlines."""
    for found in (
        getattr(model, "hf_tokenizer", None),
        getattr(getattr(model, "mlx_tokenizer", None), "_tokenizer", None),
    ):
        if found is not None:
            return found
    raise AnygramError(
        f"the tokens of a {type(model).__qualname__} are not read: give its vocabulary, as by "
        "Vocabulary.from_tokens",
        kind="unsupported",
    )


def _whitespace(pattern: str) -> Any:
    """The option of the compiler that means a pattern of blanks."""
    if pattern == "":
        return "compact"
    found = _AT_MOST.fullmatch(pattern)
    if found is None:
        raise AnygramError(
            f"the pattern of blanks {pattern!r} is not supported: it may be empty, ` ?`, `[ ]?` or "
            "` {0,n}`",
            kind="unsupported",
        )
    return {"at_most": int(found[1] or 1)}
