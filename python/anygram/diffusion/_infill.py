"""Multi-region infilling with models that were trained to fill in the middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np

from anygram._errors import AnygramError
from anygram._native import GAP, Canvas, Constraint, Methods, Solver, View
from anygram.diffusion._loop import text_of
from anygram.diffusion._models import Prompted


@dataclass(frozen=True)
class FillInTheMiddle:
    """How a model is asked for a middle: `prefix` text before `suffix` text behind `middle`, all of them
    token ids of its vocabulary. `end` are the tokens with which it says that the middle is complete."""

    prefix: Sequence[int]
    suffix: Sequence[int]
    middle: Sequence[int]
    end: Sequence[int]


@dataclass(frozen=True)
class Infilled:
    """What was filled in."""

    regions: list[list[int]]
    """The tokens of each region."""
    tokens: list[int]
    """The whole text, the regions in their places."""
    text: str
    """The same as text."""
    is_stuck: bool
    """Whether some region could not be closed: the text is no sentence."""
    n_asked: int
    """Questions to the model."""
    n_refused: int
    """Tokens that were refused."""
    completed: list[int] = field(default_factory=list[int])
    """The regions that a completion of the solver closed, since the model did not."""


def infill(
    model: Callable[..., Any],
    pieces: Sequence[str | bytes | Sequence[int]],
    constraint: Constraint,
    markers: FillInTheMiddle,
    *,
    method: Literal["exact", "intersection", "none"] = "exact",
    most: int = 128,
    refusals: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    like: Any = None,
    seed: int = 0,
) -> Infilled:
    """Fills the regions between pieces of text, one after the other, token by token.

    Before each token that a region gets, the canvas with it is asked about: what was written, and a gap for
    the rest of the region and for each region behind. So what stands to the right counts from the first token
    on. A model that knows one middle at a time sees all later pieces joined as what stands behind.

    Args:
        model: as for `generate`; the logits of the last token say what comes next.
        pieces: the fixed text, one piece more than there are regions; texts are encoded by the vocabulary.
        constraint: what the whole text has to be.
        markers: how the model is asked.
        method: `"exact"`; `"intersection"` is IG-CD's; `"none"` keeps everything.
        most: tokens of a region. When they are used up, the region is closed if the text allows it, and
            otherwise by the shortest completion that the solver finds, which may be longer.
        refusals: after so many in a region it is closed in the same way.
        temperature: 0 takes the likeliest token.
        top_k: only so many of the likeliest are drawn.
        like: a tensor on the model's device, where the model wants tensors; otherwise it gets numpy arrays.
        seed: the same seed, the same tokens.

    Raises:
        BufferError: the logits have another type or shape.
        AnygramError: there are fewer than two pieces, or options are out of range.
        LimitError: a limit was reached.
    """
    if len(pieces) < 2:
        raise AnygramError(f"{len(pieces)} pieces of text: give at least two, with a region between them")
    if not markers.end:
        raise AnygramError("no token ends a region: give `end` of the markers")
    if most < 0 or refusals < 0 or not temperature >= 0 or (top_k is not None and top_k < 1):
        raise AnygramError(
            f"most is {most}, refusals is {refusals}, temperature is {temperature}, top_k is {top_k}; "
            "they are numbers from 0 on, and top_k from 1 on"
        )
    run = _Run(constraint, pieces, method)
    random = np.random.default_rng(seed)
    size = len(constraint.vocabulary)
    n_asked = n_refused = 0
    completed: list[int] = []
    ends = set(markers.end)
    for region in range(len(pieces) - 1):
        tokens: list[int] = []
        n_left, is_closed = refusals, False
        while not is_closed and len(tokens) < most and n_left > 0:
            before, behind = run.around(region, tokens)
            shown = [*markers.prefix, *before, *markers.suffix, *behind, *markers.middle, *tokens]
            n_asked += 1
            row = _next(model, shown, like, max(size, max(ends) + 1))
            for token in _drawn(row, temperature, top_k, random):
                is_closed = token in ends
                if run.is_kept(region, tokens if is_closed else [*tokens, token], is_closed):
                    if not is_closed:
                        tokens.append(token)
                    break
                is_closed = False
                n_refused += 1
                n_left -= 1
                if n_left == 0:
                    break
            else:
                # Nothing that the model gives any weight is kept.
                n_left = 0
        if not is_closed and not run.is_kept(region, tokens, True):
            completed.append(region)
            rest = run.rest(region, tokens)
            if rest is None:
                run.regions[region] = tokens
                return run.result(True, n_asked, n_refused, completed)
            tokens += rest
        run.regions[region] = tokens
    return run.result(False, n_asked, n_refused, completed)


class _Run:
    """The text as far as it is known."""

    def __init__(
        self, constraint: Constraint, pieces: Sequence[str | bytes | Sequence[int]], method: str
    ) -> None:
        self.vocabulary = constraint.vocabulary
        self.pieces = [
            self.vocabulary.encode(piece) if isinstance(piece, (str, bytes)) else list(piece)
            for piece in pieces
        ]
        self.regions: list[list[int]] = [[] for _ in self.pieces[1:]]
        self.method: Any = method
        self.methods, self.solver = Methods(constraint), Solver(constraint)

    def around(self, region: int, tokens: list[int]) -> tuple[list[int], list[int]]:
        """What the model sees before and behind the middle."""
        before = list(self.pieces[0])
        for at in range(region):
            before += self.regions[at] + self.pieces[at + 1]
        behind = [token for piece in self.pieces[region + 1 :] for token in piece]
        return before, behind

    def canvas(self, region: int, tokens: list[int], is_closed: bool) -> Canvas:
        before, _ = self.around(region, tokens)
        slots: list[Any] = [*before, *tokens]
        if not is_closed:
            slots.append(GAP)
        for at, piece in enumerate(self.pieces[region + 1 :]):
            slots += [GAP, *piece] if at else piece
        return Canvas(slots)

    def is_kept(self, region: int, tokens: list[int], is_closed: bool) -> bool:
        if self.method == "none":
            return True
        canvas = self.canvas(region, tokens, is_closed)
        if self.method == "exact":
            return self.solver.completable(canvas).answer is True
        return self.methods.completable(canvas, self.method).answer is True

    def rest(self, region: int, tokens: list[int]) -> list[int] | None:
        """How a completion goes on in this region."""
        canvas = self.canvas(region, tokens, False)
        witness = self.solver.completable(canvas).witness
        if witness is None:
            return None
        at = next(at for at, slot in enumerate(canvas.slots) if slot is GAP)
        return cast("list[int]", witness[at])

    def result(self, is_stuck: bool, n_asked: int, n_refused: int, completed: list[int]) -> Infilled:
        tokens = list(self.pieces[0])
        for region, piece in zip(self.regions, self.pieces[1:]):
            tokens += region + piece
        text = text_of(list(tokens), self.vocabulary) or ""
        return Infilled(self.regions, tokens, text, is_stuck, n_asked, n_refused, completed)


class _Last:
    """A view of the last slot alone."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.wanted = [0]


def _next(model: Callable[..., Any], shown: list[int], like: Any, size: int) -> Any:
    """The logits of what comes next, `float64[size]`."""
    prompt = shown if like is None else like.new_tensor(shown).long()
    asked = Prompted(model, prompt, vocabulary_size=size)
    row = asked(cast(View, _Last()))[0]
    return np.asarray(row, dtype=np.float64)[:size]


def _drawn(row: Any, temperature: float, top_k: int | None, random: np.random.Generator) -> Any:
    """Tokens without replacement: the likeliest first, or drawn, by Gumbel's noise on all of them at once."""
    if temperature > 0:
        kept = row if top_k is None else np.where(row >= np.sort(row)[-min(top_k, len(row))], row, -np.inf)
        row = kept / temperature + random.gumbel(size=len(row))
    order = np.argsort(-row, kind="stable")
    return (int(token) for token in order if row[token] > -np.inf)
