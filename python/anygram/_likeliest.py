"""The likeliest canvas that has a completion, where all slots are asked about anew in each step: models
without a mask token, whose sampler does not show its canvas (DiffusionGemma in transformers and in vLLM)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from anygram._errors import AnygramError, LimitError
from anygram._native import Canvas, Constraint, LogProbs, Solver, Weigher

MASKED = -1e20
"""As vLLM's own: with minus infinity the entropy of a row would be no number."""

TOP_K = 64
"""Tokens of each row that the likeliest canvas is made of, if it can be made of them."""


class LikeliestCanvas:
    """An output of canvases, one after the other: what was committed, and a completion that is known.

    Args:
        constraint: gives the constraint, when the first canvas is asked about.
        most: the most tokens of the output. The last canvas ends as a sentence, others so that one can still
            be reached. Without, each ends as the beginning of a sentence.
        pins: tokens that stand in the next canvas, by slot.
    """

    def __init__(
        self, constraint: Callable[[], Constraint], most: int | None, pins: Mapping[int, int] | None = None
    ) -> None:
        self._constraint = constraint
        self._most = most
        self._pins = pins or {}
        self._weigher: Weigher | None = None
        self._committed: list[int] = []
        self._known: list[int] | None = None

    def commit(self, tokens: list[int]) -> None:
        """Notes tokens that the engine committed."""
        self._committed += tokens
        self._known = None

    @property
    def committed(self) -> list[int]:
        """What was committed."""
        return self._committed

    def best(self, rows: Any, top_k: int) -> list[int]:
        """The tokens of the likeliest canvas of so many rows that has a completion; where that is not found
        within the limits, those of the last one, or of any.

        Raises:
            AnygramError: the grammar has an error, or no canvas has a completion.
        """
        constraint = self._constraint()
        if self._weigher is None:
            self._weigher = Weigher(constraint)
        n_rows = len(rows)
        left = None if self._most is None else self._most - len(self._committed)
        # What comes after the last token of the output is cut off.
        width = n_rows if left is None else max(0, min(n_rows, left))
        remaining = None if left is None else max(0, left - n_rows)
        slots = [*self._committed, *(self._pins.get(at) for at in range(width))]
        canvas = Canvas(slots, "sentence") if remaining == 0 else Canvas(slots, "prefix", remaining=remaining)
        holes = [at for at in range(width) if at not in self._pins]
        log_probs = rows[holes].log_softmax(dim=-1)[:, : len(constraint.vocabulary)]
        values, ids = log_probs.topk(min(top_k, log_probs.shape[-1]), dim=-1)
        listed = LogProbs.top_k(ids.cpu().numpy().astype(np.uint32), values.cpu().numpy().astype(np.float32))
        found = self._weigher.best(canvas, listed, tail="free")
        if found.answer is False:
            raise LimitError(
                f"no output of {len(self._committed)} tokens and {width} more goes on to a complete one",
                name="max_tokens",
                value=self._most,
            )
        if found.tokens is not None:
            self._known = found.tokens[len(self._committed) :]
        elif self._known is None:
            self._known = self._any(constraint, canvas)
        eos = constraint.vocabulary.eos[0]
        return [*self._known, *[eos] * (n_rows - width)]

    def _any(self, constraint: Constraint, canvas: Canvas) -> list[int]:
        """Some completion."""
        answer = Solver(constraint).completable(canvas)
        if answer.witness is None:
            raise AnygramError(f"no completion of the canvas was found: {answer.why}", kind="undecided")
        return [cast("int", token) for token in answer.witness[len(self._committed) :]]


def make_likeliest(rows: Any, tokens: list[int]) -> None:
    """Changes rows of logits so that these tokens are the likeliest of them: whatever was as likely or
    likelier is masked. The rest of the distributions stays, for the exploration."""
    best = rows.new_tensor(tokens).long().unsqueeze(-1)
    likely = rows.gather(-1, best)
    rows.masked_fill_(rows >= likely, MASKED)
    rows.scatter_(-1, best, likely.clamp(min=MASKED / 2))
