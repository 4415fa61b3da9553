"""Constrained generation with transformers: logits processors for `generate` and for continuous batching.

transformers is not imported here, nor torch: what is looked at are arrays of token ids and scores.

    constraint = anygram.transformers.constraint(MySchema, tokenizer)
    processor = anygram.transformers.ConstraintProcessor(constraint, max_new_tokens=200)
    model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)

For continuous batching:

    manager = model.init_continuous_batching(continuous_batching_config=config)
    anygram.transformers.ContinuousProcessor(constraint).attach(manager)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from anygram._errors import AnygramError
from anygram._native import Compiler, Constraint, MaskBuffer, Matcher, apply_mask, fill_masks
from anygram._serving import vocabulary_of
from anygram._stops import avoiding, check_stops

__all__ = ["ConstraintProcessor", "ContinuousProcessor", "constraint"]


def constraint(
    source: Any, tokenizer: Any, format: Any = "json-schema", *, compiler: Compiler | None = None
) -> Constraint:
    """A constraint for the tokenizer of a model.

    Args:
        source: a JSON schema (a dict, JSON, a Pydantic model or another type), or the text of a grammar.
        tokenizer: a tokenizer of transformers, or a `Vocabulary`.
        format: how the source is written.
        compiler: options of your own. By default objects have the keys in the order of the schema, and at
            most one blank between parts: what models write of themselves, and no way to fill an output up.

    Raises:
        GrammarError: the grammar has an error.
        VocabularyError: the tokenizer is of a kind that is not read.
    """
    if compiler is None:
        compiler = Compiler(key_order="schema", whitespace={"at_most": 1})
    vocabulary = vocabulary_of(tokenizer)
    return Constraint(compiler.compile(source, format), vocabulary)


class ConstraintProcessor:
    """Lets a model generate only what a constraint allows.

    For greedy decoding, sampling, beams, batches with padding on the left, and assisted decoding; for
    continuous batching there is `ContinuousProcessor`. Outputs are known by their tokens: a row continues the
    output that its tokens extend, wherever that stood before. So rows may be reordered, repeated, cut, and
    grow by several tokens. One processor serves one call of `generate` after the other; what they computed
    stays known.

    Args:
        constraint: what outputs have to be.
        max_new_tokens: what `generate` is given. Then every output is a sentence when it gets there: the
            constraint allows only tokens after which it can still be finished.
        eos: the tokens that end an output, if not those of the vocabulary.
        avoid: stop strings, such as `generate` is given: outputs that would have one in them are not allowed,
            so none is cut within constrained text.
        prompt_length: tokens before the output. By default the length of the rows of the first call, and
            again whenever rows come that do not continue the earlier ones.

    Cost of a step and a row: a look-up or a mask, and copies of the row's output and scores.
    """

    supports_continuous_batching: bool | None = None
    """With `False` transformers would leave the processor out, and outputs would not be constrained.
    Continuous batching shows such processors only the last token of each row (5.23), which is seen here, and
    an error."""

    def __init__(
        self,
        constraint: Constraint,
        *,
        max_new_tokens: int | None = None,
        eos: Iterable[int] | None = None,
        avoid: str | Iterable[str] | None = None,
        prompt_length: int | None = None,
    ) -> None:
        for name, number in (("max_new_tokens", max_new_tokens), ("prompt_length", prompt_length)):
            if number is not None and number < 0:
                raise AnygramError(f"{name} is {number}; give a number of tokens from 0 on")
        stops = check_stops(avoid if avoid is None or isinstance(avoid, str) else list(avoid))
        self.constraint = constraint = avoiding(constraint, stops)
        self.max_new_tokens = max_new_tokens
        self._first = constraint.matcher(eos=None if eos is None else list(eos))
        if not self._first.eos:
            raise AnygramError(
                "no token ends an output: give `eos`, as model.generation_config.eos_token_id has it"
            )
        self._given_length = prompt_length
        self._masks: Any = None
        self._buffer: MaskBuffer | None = None
        self.reset()

    def reset(self) -> None:
        """Forgets all outputs: the next call begins new ones."""
        self._prompts: Any = None
        self._longest = 0
        self._outputs: dict[tuple[int, ...], Matcher] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores, with those of all tokens that are not allowed at minus infinity.

        Args:
            input_ids: `[rows, length]`, prompts and what was generated.
            scores: `[rows, vocabulary]`, of the tokens that come next; they are not changed.

        Raises:
            RefusedError: a row has a token that the constraint does not allow.
            AnygramError: no output of at most `max_new_tokens` tokens is a sentence.
        """
        length = self._length_of_prompts(input_ids)
        outputs = [self._text_of(row) for row in input_ids[:, length:].tolist()]
        matchers = self._matchers(outputs)
        masks = self._fill(matchers, outputs)
        masked = scores.clone() if hasattr(scores, "clone") else scores.copy()
        apply_mask(masked, masks)
        return masked

    def _length_of_prompts(self, input_ids: Any) -> int:
        """Tokens before the outputs; forgets the outputs if these rows do not continue them."""
        if self._given_length is not None:
            return self._given_length
        length = input_ids.shape[1]
        known = self._prompts
        if known is not None:
            begun = known.shape[1]
            continues = (
                begun <= length <= begun + self._longest + 1
                and input_ids.shape[0] == known.shape[0]
                and bool((input_ids[:, :begun] == known).all())
            )
            if continues:
                self._longest = max(self._longest, length - begun)
                return int(begun)
            if begun == length == 1:
                raise AnygramError(
                    "rows of one token, again and again: continuous batching does not show this processor "
                    "what was generated. Attach a ContinuousProcessor to its manager, or use generate() and "
                    "call reset() between prompts of one token",
                    kind="unsupported",
                )
        self.reset()
        self._prompts = input_ids
        return int(length)

    def _text_of(self, row: list[int]) -> tuple[int, ...]:
        """The tokens up to the first EOS, it included: what fills up a row that has ended is nobody's."""
        return tuple(_until_end(row, self._first.eos))

    def _matchers(self, outputs: list[tuple[int, ...]]) -> list[Matcher]:
        """The state of each output, from the nearest that is known."""
        before, after = self._outputs, dict[tuple[int, ...], Matcher]()
        for output in outputs:
            if output not in after:
                after[output] = self._continued(before, output)
        # Equal rows share a state: they have the same mask.
        self._outputs = after
        return [after[output] for output in outputs]

    def _continued(self, before: dict[tuple[int, ...], Matcher], output: tuple[int, ...]) -> Matcher:
        """An output from one that is known: itself, the one that it extends, or the nearest."""
        nearest = output if output in before else output[:-1]
        if nearest not in before:
            nearest = max(before, key=lambda known: _n_equal(known, output), default=())
        # Others may continue the same one, and the earlier rows may come again: it stays as it is.
        matcher = before.get(nearest, self._first).fork()
        matcher.go_to(output)
        return matcher

    def _fill(self, matchers: list[Matcher], outputs: list[tuple[int, ...]]) -> Any:
        """A mask for each row."""
        if self._masks is None or len(self._masks) != len(matchers):
            self._masks = np.zeros((len(matchers), self.constraint.mask_words), dtype=np.uint32)
            self._buffer = MaskBuffer(self._masks)
        buffer = self._buffer
        assert buffer is not None
        rows = {id(matcher): row for row, matcher in enumerate(matchers)}
        different = {id(matcher): matcher for matcher in matchers}
        if self.max_new_tokens is None:
            failed = fill_masks(different.values(), buffer, rows.values())
            for error in failed:
                if error is not None:
                    raise error
        else:
            for key, matcher in different.items():
                left = self.max_new_tokens - len(outputs[rows[key]])
                _fill_within(matcher, self._masks, buffer, rows[key], left)
        for row, matcher in enumerate(matchers):
            if rows[id(matcher)] != row:
                self._masks[row] = self._masks[rows[id(matcher)]]
        return self._masks


class ContinuousProcessor:
    """Lets continuous batching of transformers generate only what constraints allow.

    Each request has a state of its own, found by its id and brought to its tokens at every step, so requests
    may come, go, wait, fork and be computed again. `max_new_tokens` of a request is its budget: its output is
    a sentence when it gets there. A request that fails ends at once with EOS, and the others go on; `errors`
    says why.

    Args:
        constraint: for requests that have none of their own; by default those are not constrained.

    A request has its own constraint by `manager.add_request(ids, constraint=other)`.

    Cost of a step and a request: a look-up or a mask, and copies of its output and scores.
    """

    supported_kwargs: ClassVar[dict[str, type]] = {"constraint": Constraint}
    """What transformers lets `add_request` take."""
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()
    """What `add_request` may have without an effect."""

    errors: dict[str, AnygramError]
    """Why requests failed, by their ids: a limit was reached, no output of so few tokens is a sentence, or a
    token is there that the constraint does not allow. Take out what you have read: nobody else does."""

    def __init__(self, constraint: Constraint | None = None) -> None:
        self.constraint = constraint
        self.errors = {}
        self._known: dict[tuple[str, int], Matcher] = {}
        self._rows: list[int] = []
        self._masks: Any = None
        self._nothing: Any = None

    def attach(self, manager: Any) -> None:
        """Puts this processor before the others of a manager that was not started yet.

        Raises:
            AnygramError: the manager was started, or its configuration prepares batches before the tokens of
                the one before are known (`use_async_batching`) or records steps to repeat them
                (`use_cuda_graph`, compile configurations).
        """
        config = manager.continuous_batching_config
        compiled = config.varlen_compile_config is not None or config.decode_compile_config is not None
        if config.use_async_batching or any(config.cuda_graph_booleans) or compiled:
            raise AnygramError(
                "masks are computed between two steps, which this manager does not wait for: make it with "
                "ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False) and without "
                "compilation",
                kind="unsupported",
            )
        if manager.batch_processor is not None:
            raise AnygramError("the manager was started: attach the processor before `start`")
        processors = manager.logit_processor
        # Processors that see requests are known by their class, which is abstract and in the same module.
        module: Any = sys.modules[type(processors).__module__]
        module.ContinuousBatchingLogitsProcessor.register(type(self))
        processors.logits_processor.insert(0, self)
        processors.supported_keys.update(self.supported_kwargs)
        processors.tensors_required += 1
        processors.do_processing = True

    def fill_defaults(self, int32_tensor: Any) -> None:
        """Called by transformers: masks are kept here, so its tensor of arguments stays empty."""
        int32_tensor[:] = 0
        self._nothing = int32_tensor[:0]

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> Any:
        """Called by transformers before each step: computes the masks of these requests."""
        before, self._known = self._known, {}
        constrained = [
            (row, request.state, constraint)
            for row, request in enumerate(requests_with_new_token)
            if (constraint := request.state.logit_processor_kwargs.get("constraint", self.constraint))
        ]
        n_words = max((constraint.mask_words for _, _, constraint in constrained), default=0)
        self._rows = [row for row, _, _ in constrained]
        self._masks = np.zeros((len(constrained), n_words), dtype=np.uint32)
        buffer = MaskBuffer(self._masks)
        for at, (_, state, constraint) in enumerate(constrained):
            ends = _ends(state, constraint)
            try:
                matcher = self._matcher(before, state, constraint, ends)
                if matcher.has_ended:
                    # What fills the request up is nobody's.
                    self._masks[at] = ~np.uint32(0)
                else:
                    _fill_within(matcher, self._masks, buffer, at, _left(state))
            except AnygramError as error:
                self.errors[state.request_id] = error
                self._masks[at] = 0
                for token in ends:
                    self._masks[at, token // 32] |= np.uint32(1 << token % 32)
        return self._nothing

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """Called by transformers in each step: the scores, with those of all tokens that are not allowed at
        minus infinity."""
        if not self._rows:
            return scores
        masked = scores.clone() if hasattr(scores, "clone") else scores.copy()
        constrained = masked[self._rows]
        apply_mask(constrained, self._masks)
        masked[self._rows] = constrained
        return masked

    def _matcher(
        self, before: dict[tuple[str, int], Matcher], state: Any, constraint: Constraint, ends: list[int]
    ) -> Matcher:
        """The state of a request, at its tokens."""
        key = (state.request_id, id(constraint))
        matcher = before[key] if key in before else constraint.matcher(eos=ends)
        self._known[key] = matcher
        matcher.go_to(_until_end(_output(state), ends))
        return matcher


def _ends(state: Any, constraint: Constraint) -> list[int]:
    """The tokens that end a request: its own, of which transformers says -1 for none, or the vocabulary's."""
    given = state.eos_token_id
    listed = [] if given is None else [given] if isinstance(given, int) else given
    special = [token for token in listed if token >= 0 and constraint.vocabulary.is_special(token)]
    return special or list(constraint.vocabulary.eos)


def _output(state: Any) -> list[int]:
    """What was generated. A request that is computed again has some of it behind its prompt."""
    n_prompt: int = state._true_initial_tokens
    earlier: list[int] = state.initial_tokens[n_prompt:] if n_prompt else []
    return earlier + list(state.generated_tokens)


def _left(state: Any) -> int | None:
    """How many tokens a request may still have."""
    limit: int | None = state.max_new_tokens
    return None if limit is None else limit - len(state.generated_tokens)


def _fill_within(matcher: Matcher, masks: Any, buffer: MaskBuffer, row: int, left: int | None) -> None:
    """The mask of an output that may have so many more tokens. `buffer` is that of `masks`."""
    matcher.fill_mask(buffer, row, budget=None if left is None else max(left, 0))
    if left is not None and left > 0 and not masks[row].any():
        raise AnygramError(
            f"the output needs {matcher.minimum_tokens()} more tokens, and only {left} of max_new_tokens are "
            "left: raise it",
            kind="unsatisfiable",
        )


def _until_end(tokens: list[int], ends: Sequence[int]) -> list[int]:
    """The tokens up to the first that ends an output, it included."""
    at = next((at for at, token in enumerate(tokens) if token in ends), None)
    return tokens if at is None else tokens[: at + 1]


def _n_equal(known: tuple[int, ...], output: tuple[int, ...]) -> int:
    """The length of the longest common prefix."""
    pairs = zip(known, output)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(known), len(output)))
