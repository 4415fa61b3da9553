"""Structured outputs of vLLM: a back end for its `StructuredOutputManager`, switched on by a variable.

    ANYGRAM_VLLM=1 vllm serve MODEL

vLLM calls `plugin` in each of its processes, by the entry point `anygram` of `vllm.general_plugins`. Its
names of back ends are a closed list, so this one takes the place of `xgrammar`, which is what `auto`
chooses. Three attributes are replaced: the class `XgrammarBackend` where the manager and where the beam
search look for it, and `validate_xgrammar_grammar`, which reads a request before it is queued. `guidance` and
`outlines` stay what they are. Written for vLLM 0.33.

vLLM is imported by `install` alone, torch by vLLM.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import threading
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from anygram._errors import AnygramError
from anygram._native import Constraint, MaskBuffer, Vocabulary
from anygram._serving import Constraints, Output, unsupported

__all__ = ["Backend", "Grammar", "install", "plugin"]

VARIABLE = "ANYGRAM_VLLM"
"""The variable of the environment that switches the back end on."""

logger = logging.getLogger(__name__)


def plugin() -> None:
    """What vLLM calls in each of its processes. Does nothing unless the variable `ANYGRAM_VLLM` is 1.

    >>> import os
    >>> os.environ.pop("ANYGRAM_VLLM", None)
    >>> plugin()

    Raises:
        AnygramError: the variable is something else.
    """
    value = os.environ.get(VARIABLE, "")
    if value in ("", "0"):
        return
    if value != "1":
        raise AnygramError(f"{VARIABLE} is {value!r}: 1 switches Anygram on, 0 off")
    install()


def install() -> None:
    """Takes the place of vLLM's back end `xgrammar` in this process. A second call changes nothing."""
    manager: Any = importlib.import_module("vllm.v1.structured_output")
    xgrammar: Any = importlib.import_module("vllm.v1.structured_output.backend_xgrammar")
    types: Any = importlib.import_module("vllm.v1.structured_output.backend_types")
    for module in (manager, xgrammar):
        if not hasattr(module, "XgrammarBackend"):
            raise AnygramError(
                f"{module.__name__} has no XgrammarBackend: this adapter is for vLLM 0.33", kind="unsupported"
            )
    types.StructuredOutputBackend.register(Backend)
    types.StructuredOutputGrammar.register(Grammar)
    manager.XgrammarBackend = Backend
    xgrammar.XgrammarBackend = Backend
    xgrammar.validate_xgrammar_grammar = validate


def validate(sampling_params: Any) -> None:
    """Called by vLLM before a request is queued: refuses what no compilation is needed for.

    Grammars are compiled in the process of the engine, not here on the event loop of the server; their errors
    are errors of the request there.

    Raises:
        AnygramError: it asks for a structural tag, or its schema is no JSON. It is an error of the client to
            vLLM, which does not try another back end then.
    """
    params = sampling_params.structured_outputs
    if params is None:
        return
    if params.structural_tag is not None:
        raise _refusal(unsupported("structural_tag"))
    if isinstance(params.json, str):
        try:
            json.loads(params.json)
        except ValueError as error:
            raise _refusal(AnygramError(f"the schema is no JSON: {error}", kind="syntax")) from error


def _refusal(error: AnygramError) -> AnygramError:
    """The error as one of the client, as vLLM tells them apart. Not a `VLLMValidationError`: with that,
    `auto` would go on to another back end, and an engine has only one."""
    exceptions: Any = importlib.import_module("vllm.exceptions")
    made = type("RefusedRequest", (AnygramError, exceptions.VLLMClientError), {})
    return made(str(error), kind=error.kind)


class Backend:
    """Compiles what requests ask for: vLLM's `StructuredOutputBackend`.

    Options are those of `Compiler`, in vLLM's own configuration: `--additional-config '{"anygram": {…}}'`,
    with `cache_entries` and `cache_bytes` for the constraints that are kept. `disable_any_whitespace` and
    `disable_additional_properties` mean `whitespace="compact"` and `extra_keys="none"`. One request changes
    its own by the key `x-anygram` of its schema.

    Args:
        vllm_config: vLLM's configuration.
        tokenizer: the tokenizer of the model.
        vocab_size: rows of its output layer, which may be more or fewer than the tokens of the tokenizer.

    The tokenizer is read when the first grammar is compiled. What is wrong with it, or with the options, is an
    error of each request then. vLLM makes back ends where it answers an exception without its text.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.masks = Masks()
        self._constraints: Constraints | None = None
        self._making = threading.Lock()

    @property
    def constraints(self) -> Constraints:
        """The constraints of its requests.

        Raises:
            VocabularyError: the tokenizer is of a kind that is not read.
            AnygramError: an option is not one.
        """
        with self._making:
            if self._constraints is None:
                options, limits = _options(self.vllm_config)
                given = self.tokenizer
                vocabulary = given if isinstance(given, Vocabulary) else Vocabulary.from_tokenizer(given)
                self._constraints = Constraints(vocabulary, options, **limits)
            return self._constraints

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: Iterable[int] | None = None
    ) -> Grammar:
        """The grammar of a request. Called on a thread of vLLM's executor; what it raises is an error of this
        request.

        Args:
            request_type: a `StructuredOutputOptions`.
            grammar_spec: a schema, a pattern, a grammar, or a JSON array of choices.
            stop_token_ids: the tokens that end the output, by default the EOS tokens of the tokenizer.

        Raises:
            AnygramError: a `ValueError`, of the class that says what is wrong.
        """
        constraint = self.constraints.get(request_type.name.lower(), grammar_spec)
        return Grammar(constraint, stop_token_ids, self.masks)

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """A tensor with a row for each mask, of as many words as the tokenizer or the model needs."""
        torch: Any = importlib.import_module("torch")
        n_tokens = max(self.vocab_size, len(self.constraints.vocabulary))
        return torch.full((max_num_seqs, -(-n_tokens // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Cancels what compiles, and lets go of everything."""
        if self._constraints is not None:
            self._constraints.close()
        self.masks = Masks()


class Masks:
    """The tensor that masks go to, checked once: vLLM gives the same one at every step."""

    def __init__(self) -> None:
        self._known: tuple[Any, Any, MaskBuffer] | None = None

    def of(self, tensor: Any) -> tuple[Any, MaskBuffer]:
        """Its memory as an array, and as a buffer of masks. May be called on many threads."""
        known = self._known
        if known is None or known[0] is not tensor:
            array = np.asarray(tensor)
            known = self._known = (tensor, array, MaskBuffer(array))
        return known[1], known[2]


class Grammar:
    """The state of one request: vLLM's `StructuredOutputGrammar`.

    >>> import anygram
    >>> vocabulary = anygram.Vocabulary.builtin()
    >>> constraint = Constraints(vocabulary).get("regex", "(ab)+")
    >>> grammar = Grammar(constraint)
    >>> a, b = vocabulary.encode("a")[0], vocabulary.encode("b")[0]
    >>> grammar.accept_tokens("request", [a, b])
    True
    >>> grammar.accept_tokens("request", [b])
    False
    >>> grammar.validate_tokens([a, b, b]) == [a, b]
    True
    >>> grammar.accept_tokens("request", [*vocabulary.eos])
    True
    >>> grammar.is_terminated()
    True
    """

    def __init__(
        self,
        constraint: Constraint,
        stop_token_ids: Iterable[int] | None = None,
        masks: Masks | None = None,
    ) -> None:
        self.output = Output(constraint, stop_token_ids)
        self._masks = Masks() if masks is None else masks

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Appends tokens; those after the end are ignored. `False` is an error of this request: the log says
        which token was not allowed, or why there was no mask."""
        for token in tokens:
            try:
                self.output.accept(token)
            except AnygramError as error:
                logger.error("request %s: token %d: %s", request_id, token, error.kind)
                logger.debug("request %s: %s", request_id, error)
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest prefix of drafts that could be appended. A negative id fills a block of drafts up."""
        drafts = tokens[: next((at for at, token in enumerate(tokens) if token < 0), len(tokens))]
        return drafts[: self.output.validate(drafts)]

    def rollback(self, num_tokens: int) -> None:
        """Takes tokens back, also over the end."""
        self.output.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        """Writes the mask of what may come next into a row. Where there is none, as when a limit is reached,
        only stop tokens are allowed, and `accept_tokens` fails: an error of this request, and not of the
        engine."""
        array, buffer = self._masks.of(bitmask)
        self.output.fill(array, buffer, batch_index)

    def is_terminated(self) -> bool:
        """Whether a stop token was appended."""
        return self.output.has_ended

    def reset(self) -> None:
        """Takes all tokens back."""
        self.output.reset()


def _options(vllm_config: Any) -> tuple[dict[str, Any], dict[str, int]]:
    """Options of the compiler, and bounds of the cache, of a configuration of vLLM."""
    outputs = vllm_config.structured_outputs_config
    options: dict[str, Any] = {}
    if outputs.disable_any_whitespace:
        options["whitespace"] = "compact"
    if outputs.disable_additional_properties:
        options["extra_keys"] = "none"
    additional: Any = getattr(vllm_config, "additional_config", None)
    given: Any = cast("dict[str, Any]", additional).get("anygram", {}) if isinstance(additional, dict) else {}
    if not isinstance(given, dict):
        raise AnygramError('additional_config["anygram"] is an object with options of the compiler')
    options.update(cast("dict[str, Any]", given))
    limits = {
        name: options.pop(option)
        for option, name in (("cache_entries", "max_entries"), ("cache_bytes", "max_bytes"))
        if option in options
    }
    return options, limits
