"""Structured outputs of SGLang: a grammar back end.

    python -m sglang.launch_server --model-path MODEL --grammar-backend anygram

SGLang calls `plugin` in each of its processes, by the entry point `anygram` of `sglang.srt.plugins`; it adds
the name and changes nothing else. Written for SGLang 0.5.23.

SGLang is imported by `plugin` and `create_backend` alone, torch by SGLang.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, cast

import numpy as np

from anygram._ahead import WorkAhead
from anygram._errors import AnygramError
from anygram._native import Constraint, MaskBuffer, apply_mask
from anygram._serving import Output, Tell, check_budget, vocabulary_of
from anygram.serving import Compilation, CompileService, split_options

__all__ = ["Backend", "Grammar", "create_backend", "plugin"]

NAME = "anygram"
"""What `--grammar-backend` takes."""

ANY_JSON = "$$ANY$$"
"""The schema of any JSON value, as SGLang writes it."""

VARIABLE = "ANYGRAM_SGLANG_OPTIONS"
"""The variable of the environment with options, as JSON: of `Compiler`, and those of the compile service as
for vLLM."""

_BASE = "sglang.srt.constrained.base_grammar_backend"


def plugin() -> None:
    """What SGLang calls in each of its processes: makes the name of the back end known. A second call changes
    nothing."""
    importlib.import_module(_BASE).register_grammar_backend(NAME, create_backend)
    choices: list[str] = importlib.import_module("sglang.srt.arg_groups.choices").GRAMMAR_BACKEND_CHOICES
    if NAME not in choices:
        choices.append(NAME)


def create_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None = None
) -> Any:
    """What SGLang calls to make the back end. With a reasoning parser it is wrapped in SGLang's own
    `ReasonerGrammarBackend`, which SGLang does for its own back ends alone.

    Args:
        server_args: not read: SGLang keeps what they say in its context.
        tokenizer: the tokenizer of the model.
        vocab_size: rows of its output layer.
        eos_token_ids: the tokens that end an output, besides the EOS of the tokenizer.

    Raises:
        AnygramError: the server asks for strict thinking, or for a pattern of white space, or its options are
            not known.
    """
    base: Any = importlib.import_module(_BASE)
    serving: Any = importlib.import_module("sglang.srt.runtime_context").get_serving()
    if serving.enable_strict_thinking:
        raise AnygramError(
            "strict thinking needs a filter of tokens, which this back end has not", kind="unsupported"
        )
    if serving.constrained_json_whitespace_pattern is not None:
        raise AnygramError(
            "a pattern of white space is not supported: use --constrained-json-max-whitespace-cnt",
            kind="unsupported",
        )
    options: dict[str, Any] = {}
    if serving.constrained_json_max_whitespace_cnt is not None:
        options["whitespace"] = {"at_most": serving.constrained_json_max_whitespace_cnt}
    if serving.constrained_json_disable_any_whitespace:
        options["whitespace"] = "compact"
    given, service = split_options(server_options())
    grammar = type("AnygramGrammar", (Grammar, base.BaseGrammarObject), {})
    kind: Any = type(
        "AnygramBackend",
        (Backend, base.BaseGrammarBackend),
        {"grammar": grammar, "invalid": base.InvalidGrammarObject},
    )
    made = kind(tokenizer, vocab_size, eos_token_ids, {**options, **given}, **service)
    if not serving.reasoning_parser:
        return made
    parsers: Any = importlib.import_module("sglang.srt.parser.reasoning_parser")
    parser = parsers.ReasoningParser(
        model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return made
    reasoner: Any = importlib.import_module("sglang.srt.constrained.reasoner_grammar_backend")

    def request(self: Any, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        return made.request(self, key, require_reasoning)

    # SGLang's own keeps grammars without a bound.
    own = {"get_cached_or_future_value": request, "set_cache": Backend.set_cache, "reset": Backend.reset}
    return type("AnygramReasonerBackend", (reasoner.ReasonerGrammarBackend,), own)(made, parser, tokenizer)


def server_options() -> dict[str, Any]:
    """The options in the variable of the environment: SGLang has no place for those of a back end."""
    text = os.environ.get(VARIABLE, "{}")
    try:
        options = json.loads(text)
    except ValueError as error:
        raise AnygramError(f"{VARIABLE} is no JSON: {error}", kind="syntax") from error
    if not isinstance(options, dict):
        raise AnygramError(f"{VARIABLE} is a JSON object with options")
    return cast("dict[str, Any]", options)


class Grammar:
    """The state of one request: what SGLang's `BaseGrammarObject` has.

    >>> import anygram
    >>> vocabulary = anygram.Vocabulary.builtin()
    >>> template = Grammar(CompileService(vocabulary).get("regex", "abc|x").constraint, vocabulary.eos)
    >>> grammar = template.copy()
    >>> grammar.accept_token(vocabulary.encode("a")[0])
    >>> grammar.jump_forward_str_state(grammar.try_jump_forward(None))
    ('bc', -1)
    >>> grammar.rollback(1)
    >>> grammar.try_jump_forward(None) is None
    True
    """

    finished: bool
    """Whether the request has ended, as SGLang sets it."""
    current_token: int | None
    """The last token."""
    grammar_stats: Any
    """What SGLang logs; nothing."""

    def __init__(
        self,
        constraint: Constraint,
        stops: Iterable[int],
        tell: Tell | None = None,
        tick: Callable[[], None] | None = None,
        ahead: WorkAhead | None = None,
    ) -> None:
        self._begin(Output(constraint, stops, tell, tick, ahead))

    def _begin(self, output: Output) -> None:
        self.output = output
        self.finished = False
        self.current_token = None
        self.grammar_stats = None

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        """Nothing: SGLang wraps grammars of outputs with reasoning."""

    def accept_token(self, token: int) -> None:
        """Appends a token; nothing happens after the end.

        Raises:
            AnygramError: a `ValueError`, which ends this request: the token may not come next.
        """
        self.output.accept(int(token))
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Takes tokens back, also over the end."""
        self.output.rollback(k)

    def is_terminated(self) -> bool:
        """Whether a stop token was appended."""
        return self.output.has_ended

    def copy(self) -> Any:
        """The same state for another request; nothing is compiled."""
        made = object.__new__(type(self))
        made._begin(self.output.copy())
        return made

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        """A tensor of the CPU with a row for each request, which allows everything."""
        return _allocate(max(vocab_size, len(self.output.matcher.constraint.vocabulary)), batch_size)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        """Writes the mask of what may come next into a row. Where there is none, as when a limit is reached,
        only stop tokens are allowed, and `accept_token` fails: an error of this request alone."""
        array = np.asarray(vocab_mask)
        self.output.fill(array, MaskBuffer(array), idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: Any) -> None:
        """Writes the masks of many requests on several threads; other rows stay as they are."""
        ours: list[Any] = []
        for entry in entries:
            if isinstance(entry.grammar, Grammar):
                ours.append(entry)
            else:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)
        array = np.asarray(vocab_mask)
        buffer = MaskBuffer(array)
        outputs: list[Output] = [entry.grammar.output for entry in ours]
        Output.fill_all(outputs, array, buffer, [entry.row for entry in ours])

    @staticmethod
    def reset_vocab_mask(vocab_mask: Any) -> None:
        """Allows everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        """The masks on the device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        """Sets the logits of all tokens that are not allowed to minus infinity."""
        apply_mask(logits, vocab_mask)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that every continuation begins with, if there is any; as text, since the tokens that a
        model would write it with go over its end."""
        self.output.stop_ahead()
        text = self.output.matcher.forced().bytes.decode(errors="ignore")
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of `try_jump_forward`; there is no next state."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: Sequence[int], new_output_ids: Sequence[int], next_state: int
    ) -> None:
        """Brings the state to an output with other tokens.

        Raises:
            AnygramError: a token may not come next.
        """
        self.output.go_to(list(new_output_ids))


class Backend:
    """Compiles what requests ask for: what SGLang's `BaseGrammarBackend` has, which `create_backend` puts
    below it.

    Args:
        tokenizer: the tokenizer of the model.
        vocab_size: rows of its output layer, which may be more or fewer than the tokens of the tokenizer.
        eos_token_ids: the tokens that end an output, besides the EOS of the tokenizer.
        options: of `Compiler`. One request changes its own by the key `x-anygram` of its schema.
        service: options of `CompileService`.

    Raises:
        VocabularyError: the tokenizer is of a kind that is not read.
    """

    grammar: Any = Grammar
    """The class of grammars."""
    invalid: Any
    """SGLang's class of refused requests."""

    def __init__(
        self,
        tokenizer: Any,
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
        options: dict[str, Any] | None = None,
        **service: Any,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        vocabulary = vocabulary_of(tokenizer)
        self.stops = sorted({*vocabulary.eos, *(eos_token_ids or ())})
        self.service = CompileService(vocabulary, options, **service)
        self._answered = threading.local()

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        """Called by SGLang: the grammar if it is known, or a future of it, whose `cancel` stops the
        compilation unless another request waits for it."""
        return self.request(self, key, require_reasoning)

    def request(self, maker: Any, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        """The same, with the grammar that `maker` makes: this back end, or SGLang's wrapper of it."""
        kind, source = asked_of(key)
        waiting = self.service.submit(kind, source)

        def make() -> Any:
            self._answered.waiting = waiting
            try:
                return maker._init_value_dispatch(key, require_reasoning)
            finally:
                self._answered.waiting = None

        if waiting.done():
            return make(), True
        made = _Waiting(waiting)
        waiting.add_done_callback(lambda _: made.finish(make))
        return made, False

    def dispatch_json(self, key_string: str) -> Any:
        """The grammar of a JSON schema."""
        return self._dispatch(*asked_of(("json", key_string)))

    def dispatch_regex(self, key_string: str) -> Any:
        """The grammar of a regular expression."""
        return self._dispatch("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> Any:
        """The grammar of a text in EBNF, GBNF or Lark's notation."""
        return self._dispatch("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """The grammar of a structural tag."""
        return self._dispatch("structural_tag", key_string)

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        """As that of a grammar: SGLang's wrapper for reasoning asks the back end."""
        return _allocate(max(vocab_size, len(self.service.vocabulary)), batch_size)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        """As that of a grammar."""
        return Grammar.move_vocab_mask(vocab_mask, device)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        """As that of a grammar."""
        Grammar.apply_vocab_mask(logits, vocab_mask)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """Called by SGLang: nothing. The service remembers what is to be remembered, within its bounds;
        SGLang would keep grammars without a bound, and time-outs as errors of the grammar."""

    def reset(self) -> None:
        """Called by SGLang when its caches are flushed: nothing, constraints hold for every request."""

    def _dispatch(self, kind: str, source: str) -> Any:
        waiting: Compilation | None = getattr(self._answered, "waiting", None)
        try:
            compiled = self.service.get(kind, source) if waiting is None else waiting.result()
            texts = compiled.asked.get("error_texts")
            tell: Tell = lambda error: self.service.error_of(error, texts=texts)  # noqa: E731
            grammar = self.grammar(compiled.constraint, self.stops, tell, self.service.tick, self.service.ahead)
            if compiled.asked.get("avoid_stop") is True:
                # SGLang does not tell a back end the stop strings of a request.
                message = "SGLang does not tell the stop strings of a request: list them under `avoid_stop`"
                raise AnygramError(message, kind="unsupported")
            if "max_tokens" in compiled.asked:
                # SGLang does not tell a back end how many tokens a request may have; this one says so itself.
                check_budget(grammar.output, compiled.asked["max_tokens"] - 1)
            return grammar
        except AnygramError as error:
            return self.invalid(str(error))


class _Waiting(Future[Any]):
    """A grammar of SGLang that is being compiled."""

    def __init__(self, waiting: Compilation) -> None:
        super().__init__()
        self._waiting = waiting

    def cancel(self) -> bool:
        """Gives the request up; the compilation stops unless another waits for it."""
        cancelled = super().cancel()
        if cancelled:
            self._waiting.cancel()
        return cancelled

    def finish(self, make: Callable[[], Any]) -> None:
        """Called when it was compiled."""
        if not self.set_running_or_notify_cancel():
            return
        try:
            self.set_result(make())
        except BaseException as error:
            self.set_exception(error)


def asked_of(key: tuple[str, str]) -> tuple[str, str]:
    """What a key of SGLang asks for, as the service calls it."""
    kind, _, _ = key[0].partition(":")
    if kind == "json":
        return "json", "{}" if key[1] == ANY_JSON else key[1]
    return ("grammar" if kind in ("ebnf", "full_assistant_ebnf") else kind), key[1]


def _allocate(n_tokens: int, n_rows: int) -> Any:
    torch: Any = importlib.import_module("torch")
    # Pinned memory is copied to the device without waiting.
    pinned: bool = torch.cuda.is_available()
    return torch.full((n_rows, -(-n_tokens // 32)), -1, dtype=torch.int32, pin_memory=pinned)
