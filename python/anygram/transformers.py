"""Constrained generation with transformers: a logits processor that `generate` takes.

transformers is not imported here, nor torch: what is looked at are arrays of token ids and scores.

    constraint = anygram.transformers.constraint(MySchema, tokenizer)
    processor = anygram.transformers.ConstraintProcessor(constraint, max_new_tokens=200)
    model.generate(**inputs, logits_processor=[processor], max_new_tokens=200)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from anygram._errors import AnygramError
from anygram._native import Compiler, Constraint, MaskBuffer, Matcher, Vocabulary, apply_mask, fill_masks

__all__ = ["ConstraintProcessor", "constraint"]


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
    vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else Vocabulary.from_tokenizer(tokenizer)
    return Constraint(compiler.compile(source, format), vocabulary)


class ConstraintProcessor:
    """Lets a model generate only what a constraint allows.

    For greedy decoding, sampling, beams, batches with padding on the left, and assisted decoding; continuous
    batching is refused, since it shows processors only the last token of each row. Outputs are known by their
    tokens: a row continues the output that its tokens extend, wherever that stood before, so rows may be
    reordered, repeated, cut and grow by several tokens. One processor serves one call of `generate` after the
    other; what they computed stays known.

    Args:
        constraint: what outputs have to be.
        max_new_tokens: what `generate` is given. Then every output is a sentence when it gets there: the
            constraint allows only tokens after which it can still be finished.
        eos: the tokens that end an output, if not those of the vocabulary.
        prompt_length: tokens before the output. By default the length of the rows of the first call, and
            again whenever rows come that do not continue the earlier ones.

    Cost of a step and a row: a look-up or a mask, and copies of the row's output and scores.
    """

    supports_continuous_batching: bool | None = None
    """With `False` transformers would leave the processor out, and outputs would not be constrained. It shows
    processors only the last token of each row (5.23), which is seen here, and an error."""

    def __init__(
        self,
        constraint: Constraint,
        *,
        max_new_tokens: int | None = None,
        eos: Iterable[int] | None = None,
        prompt_length: int | None = None,
    ) -> None:
        self.constraint = constraint
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
                    "rows of one token, again and again: continuous batching of transformers does not show a "
                    "processor what was generated, so nothing can be constrained there. Use generate(), or "
                    "call reset() between prompts of one token",
                    kind="unsupported",
                )
        self.reset()
        self._prompts = input_ids
        return int(length)

    def _text_of(self, row: list[int]) -> tuple[int, ...]:
        """The tokens up to the first EOS, it included: what fills up a row that has ended is nobody's."""
        ends = self._first.eos
        at = next((at for at, token in enumerate(row) if token in ends), None)
        return tuple(row if at is None else row[: at + 1])

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
                self._fill_within(matcher, buffer, rows[key], self.max_new_tokens - len(outputs[rows[key]]))
        for row, matcher in enumerate(matchers):
            if rows[id(matcher)] != row:
                self._masks[row] = self._masks[rows[id(matcher)]]
        return self._masks

    def _fill_within(self, matcher: Matcher, buffer: MaskBuffer, row: int, left: int) -> None:
        matcher.fill_mask(buffer, row, budget=max(left, 0))
        if not self._masks[row].any() and left > 0:
            raise AnygramError(
                f"the output needs {matcher.minimum_tokens()} more tokens, and only {left} of max_new_tokens="
                f"{self.max_new_tokens} are left: raise it",
                kind="unsatisfiable",
            )


def _n_equal(known: tuple[int, ...], output: tuple[int, ...]) -> int:
    """The length of the longest common prefix."""
    pairs = zip(known, output)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(known), len(output)))
