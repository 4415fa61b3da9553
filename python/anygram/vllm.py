"""Structured outputs of vLLM: a back end for its `StructuredOutputManager`, switched on by a variable.

    ANYGRAM_VLLM=1 vllm serve MODEL

vLLM calls `plugin` in each of its processes, by the entry point `anygram` of `vllm.general_plugins`. Its
names of back ends are a closed list, so this one takes the place of `xgrammar`, which is what `auto`
chooses. Five attributes are replaced: the class `XgrammarBackend` where the manager and where the beam
search look for it, `validate_xgrammar_grammar`, which reads a request before it is queued, the manager's
`_create_grammar`, around which our back end learns of the request: its `max_tokens`, and whether it was
aborted; and its `_async_submit_fill_bitmask`, which hands the masks of large batches to threads that wait for
the lock of the interpreter: we fill them all by one call. `guidance` and `outlines` stay what they are.
Written for vLLM 0.33.

vLLM is imported by `install` alone, torch by vLLM.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from anygram._ahead import WorkAhead
from anygram._errors import AnygramError
from anygram._native import Constraint, MaskBuffer
from anygram._serving import Output, Tell, check_budget, is_switched_on, vocabulary_of
from anygram._stops import check_stops
from anygram.serving import CompileService, check_avoid, check_close, options_of, split_options

__all__ = ["Backend", "Grammar", "install", "plugin"]

VARIABLE = "ANYGRAM_VLLM"
"""The variable of the environment that switches the back end on."""

CLOSE_FROM = 512
"""How many tokens are left, by default, when masks begin to let an output be complete within `max_tokens`."""

TICK = 64
"""After how many masks the service looks at its memory."""

logger = logging.getLogger(__name__)


def plugin() -> None:
    """What vLLM calls in each of its processes. Does nothing unless the variable `ANYGRAM_VLLM` is 1.

    >>> import os
    >>> os.environ.pop("ANYGRAM_VLLM", None)
    >>> plugin()

    Raises:
        AnygramError: the variable is something else.
    """
    if is_switched_on(VARIABLE):
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
    _wrap(manager.StructuredOutputManager, "_create_grammar", _create_grammar)
    _wrap(manager.StructuredOutputManager, "_async_submit_fill_bitmask", _submit)


def _wrap(manager: Any, name: str, ours: Callable[[Callable[[Any, Any], Any], Any, Any], Any]) -> None:
    """Replaces a method of vLLM's manager where the back end is ours. `ours` gets the one that was there too."""
    theirs = getattr(manager, name, None)
    if theirs is None:
        raise AnygramError(
            f"StructuredOutputManager has no {name}: this adapter is for vLLM 0.33", kind="unsupported"
        )
    if hasattr(theirs, "anygram"):
        return

    @functools.wraps(theirs)
    def method(self: Any, argument: Any) -> Any:
        is_ours = isinstance(self.backend, Backend)
        return ours(theirs, self, argument) if is_ours else theirs(self, argument)

    method.anygram = True  # type: ignore[attr-defined]
    setattr(manager, name, method)


def _create_grammar(theirs: Callable[[Any, Any], Any], manager: Any, request: Any) -> Any:
    """Lets our back end know for which request the manager compiles."""
    with manager.backend.serving(request):
        return theirs(manager, request)


def _submit(_theirs: Callable[[Any, Any], Any], manager: Any, batch: Any) -> Any:
    """Fills the masks of a large batch by one call of ours."""
    return manager.backend.masks.submit(manager, batch)


def validate(sampling_params: Any) -> None:
    """Called by vLLM before a request is queued: refuses what no compilation is needed for.

    Grammars are compiled in the process of the engine, not here on the event loop of the server; their errors
    are errors of the request there.

    Raises:
        AnygramError: its schema is no JSON. It is an error of the client to vLLM, which does not try another
            back end then.
    """
    params = sampling_params.structured_outputs
    if params is None:
        return
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
    and those of the compile service: `cache_entries`, `cache_bytes`, `max_waiting`, `max_source_bytes`,
    `compile_seconds`, `compile_threads`, `error_texts`, `prepared_masks`, `work_ahead`, `metrics_file`. With `close` an output is complete
    when it has `max_tokens` tokens: masks see to it from the first token on (`true`), from so many left
    tokens on (a number, by default 512), or not (`false`). With `avoid_stop` no output has a stop string of its
    request in it (`true`), or one of a list. `disable_any_whitespace` and
    `disable_additional_properties` mean `whitespace="compact"` and `extra_keys="none"`. One request changes
    its own by the key `x-anygram` of its schema.

    Args:
        vllm_config: vLLM's configuration.
        tokenizer: the tokenizer of the model.
        vocab_size: rows of its output layer, which may be more or fewer than the tokens of the tokenizer.

    The tokenizer is read when the first grammar is compiled. What is wrong with it, or with the options, is
    an error of each request then. vLLM makes back ends where it answers an exception without its text.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        self.vllm_config = vllm_config
        self.tokenizer = tokenizer
        self.vocab_size = vocab_size
        self.masks = Masks()
        self._service: CompileService | None = None
        self._closes: bool | int = CLOSE_FROM
        self._avoids: bool | list[str] = False
        self._making = threading.Lock()
        self._served = threading.local()

    @property
    def service(self) -> CompileService:
        """What compiles for its requests.

        Raises:
            VocabularyError: the tokenizer is of a kind that is not read.
            AnygramError: an option is not one.
        """
        with self._making:
            if self._service is None:
                self._service, own = service_of(self.vllm_config, self.tokenizer)
                self._closes, self._avoids = own.closes, own.avoids
                self.masks.service = self._service
            return self._service

    @contextlib.contextmanager
    def serving(self, request: Any) -> Generator[None, None, None]:
        """While this thread compiles for a request of vLLM."""
        self._served.request = request
        try:
            yield
        finally:
            self._served.request = None

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
        request = getattr(self._served, "request", None)
        is_aborted = None if request is None else getattr(request, "is_finished", None)
        kind, service = request_type.name.lower(), self.service
        avoids = options_of(kind, grammar_spec).get("avoid_stop", self._avoids)
        if avoids is True:
            avoids = getattr(getattr(request, "sampling_params", None), "stop", None)
        stops = [] if avoids is False else check_stops(avoids)
        options = {"avoid": stops} if stops else None
        compiled = service.get(kind, grammar_spec, options, is_aborted=is_aborted)
        texts = compiled.asked.get("error_texts")
        grammar = Grammar(
            compiled.constraint,
            stop_token_ids,
            self.masks,
            lambda error: service.error_of(error, texts=texts),
            service.ahead,
        )
        asked: int | None = compiled.asked.get("max_tokens")
        if asked is not None:
            check_budget(grammar.output, asked - 1)
        closes = compiled.asked.get("close", self._closes)
        if request is not None and closes is not False:
            grammar.close_within(request, self.vllm_config, sys.maxsize if closes is True else closes)
        return grammar

    def allocate_token_bitmask(self, max_num_seqs: int) -> Any:
        """A tensor with a row for each mask, of as many words as the tokenizer or the model needs."""
        torch: Any = importlib.import_module("torch")
        n_tokens = max(self.vocab_size, len(self.service.vocabulary))
        return torch.full((max_num_seqs, -(-n_tokens // 32)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Cancels what compiles, and lets go of everything."""
        if self._service is not None:
            self._service.close()
        self.masks = Masks()


class Masks:
    """The tensor that masks go to, checked once: vLLM gives the same one at every step."""

    def __init__(self) -> None:
        self.service: CompileService | None = None
        self._known: tuple[Any, Any, MaskBuffer] | None = None
        self._until_tick = TICK
        self._submitted: list[Any] = []

    def of(self, tensor: Any, n_masks: int = 1) -> tuple[Any, MaskBuffer]:
        """Its memory as an array, and as a buffer of masks, for so many of them. May be called on many
        threads."""
        known = self._known
        self._until_tick -= n_masks
        if self._until_tick <= 0 and self.service is not None:
            self._until_tick = TICK
            self.service.tick()
        if known is None or known[0] is not tensor:
            array = np.asarray(tensor)
            known = self._known = (tensor, array, MaskBuffer(array))
        return known[1], known[2]

    def submit(self, manager: Any, batch: Iterable[tuple[Any, int, bool, Any]]) -> Submitted:
        """Takes the next rows of a step, to be filled with all others when vLLM waits for some of them."""
        for entry in batch:
            # A step begins with the first row. Of one that was given up nothing may be left, since its requests
            # may have other rows now.
            if entry[1] == 0:
                self._submitted.clear()
            self._submitted.append(entry)
        return Submitted(self, manager)

    def fill_submitted(self, manager: Any) -> None:
        """Fills what was submitted."""
        submitted, self._submitted = self._submitted, []
        outputs: list[Output] = []
        rows: list[int] = []
        others: list[Any] = []
        for entry in submitted:
            grammar, row, applies, _ = entry
            if applies and isinstance(grammar, Grammar) and not grammar.output.has_ended:
                outputs.append(grammar.begun())
                rows.append(row)
            else:
                others.append(entry)
        if others:
            manager._fill_bitmasks(others)
        if outputs:
            Output.fill_all(outputs, *self.of(manager._grammar_bitmask, len(outputs)), rows)


class Submitted:
    """What vLLM waits for: of a `Future` what it uses."""

    def __init__(self, masks: Masks, manager: Any) -> None:
        self._masks, self._manager = masks, manager

    def result(self) -> None:
        """Fills all that was submitted, if that was not done."""
        self._masks.fill_submitted(self._manager)


class Grammar:
    """The state of one request: vLLM's `StructuredOutputGrammar`.

    >>> import anygram
    >>> vocabulary = anygram.Vocabulary.builtin()
    >>> constraint = CompileService(vocabulary).get("regex", "(ab)+").constraint
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
        tell: Tell | None = None,
        ahead: WorkAhead | None = None,
    ) -> None:
        self.output = Output(constraint, stop_token_ids, tell, ahead=ahead)
        self._masks = Masks() if masks is None else masks
        self._request: Any = None
        self._margin = 0

    def close_within(self, request: Any, vllm_config: Any, close_from: int = sys.maxsize) -> None:
        """Lets masks allow only what can be complete when the request has all tokens that it may have, as
        soon as no more than `close_from` of them are left.

        Raises:
            LimitError: no output is so short.
        """
        params = request.sampling_params
        most: Any = getattr(params, "max_tokens", None)
        if type(most) is not int:
            return
        n_prompt: Any = getattr(request, "num_prompt_tokens", None)
        longest: Any = getattr(vllm_config.model_config, "max_model_len", None)
        if type(n_prompt) is int and type(longest) is int:
            most = min(most, longest - n_prompt)
        known = self.output.limit
        # One token is left for the stop token: without it vLLM says that the output was cut.
        if known is None:
            check_budget(self.output, most - 1, close_from)
        else:
            check_budget(self.output, min(known, most - 1))
        # The tokens of reasoning count too, and it ends later; within a block of drafts perhaps.
        self._request, self._most = request, self.output.limit
        if vllm_config.structured_outputs_config.reasoning_parser:
            self._margin = vllm_config.num_speculative_tokens

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Appends tokens; those after the end are ignored. `False` is an error of this request: the log says
        which token was not allowed, or why there was no mask."""
        accept = self.output.accept
        for token in tokens:
            try:
                accept(token)
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
        self.begun().fill(array, buffer, batch_index)

    def begun(self) -> Output:
        """The output before a mask. At the first one, what came before, such as reasoning, is not there any
        more for the output."""
        request, self._request = self._request, None
        if request is not None:
            before = request.num_output_tokens - self.output.n_tokens
            if before > 0:
                self.output.limit = max(0, self._most - before - self._margin)
        return self.output

    def is_terminated(self) -> bool:
        """Whether a stop token was appended."""
        return self.output.has_ended

    def reset(self) -> None:
        """Takes all tokens back."""
        self.output.reset()


class Own(NamedTuple):
    """The options that are about outputs."""

    closes: bool | int
    avoids: bool | list[str]


def service_of(vllm_config: Any, tokenizer: Any, **defaults: Any) -> tuple[CompileService, Own]:
    """What compiles for a configuration of vLLM, and the options `close` and `avoid_stop`.

    Raises:
        VocabularyError: the tokenizer is of a kind that is not read.
        AnygramError: an option is not one.
    """
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
    options, own = split_options(options)
    closes = options.pop("close", CLOSE_FROM)
    check_close(closes)
    avoids = options.pop("avoid_stop", False)
    check_avoid(avoids)
    service = CompileService(vocabulary_of(tokenizer), options, **{**defaults, **own})
    return service, Own(closes, avoids)
