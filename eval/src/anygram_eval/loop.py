"""Denoising under a method.

The Rust loop (`anygram::decode`) is the one that is proven and tested; this one is for models that live in Python. It knows a model as something that gives log-probabilities of
the holes of a canvas, and a method as questions to `anygram batch`:

| method | a step |
|---|---|
| `none` | the surest proposals |
| `exact` | the holes' proposals are their likeliest admissible tokens; of these the compatible ones, the surest first |
| `compatible` | the likeliest tokens, of these the compatible ones; what is refused proposes its next token |
| `best` | the surest tokens of the best completion |
| `intersection`, `lookahead` | as `compatible`, by the published question |
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from anygram_eval.batch import Batch, Slot

METHODS = ("none", "exact", "compatible", "best", "intersection", "lookahead")

#: Tokens listed for each hole: what is proposed and weighed.
LISTED = 32
#: Refusals of a step after which the best completion is taken (`exact` and its kin), or the run is stuck.
REFUSALS = 100

#: Of each hole its likeliest tokens with log-probabilities, the likeliest first.
Rows = list[list[tuple[int, float]]]


class Model(Protocol):
    """What fills canvases. The prompt is its own business."""

    def rows(self, canvas: Sequence[Slot], listed: int, step: int) -> Rows:
        """The likeliest tokens of each hole (`None`), in order, with natural log-probabilities over the whole vocabulary."""
        ...


@dataclass
class Options:
    method: str = "compatible"
    #: Questions to the model.
    steps: int = 128
    #: Slots of a block; None for all at once.
    block: int | None = 32
    temperature: float = 0.2
    seed: int = 0


@dataclass
class Decoded:
    canvas: list[Slot]
    stuck: bool = False
    #: Of each slot what the model gave its token in the step it was kept in.
    log_probs: dict[int, float] = field(default_factory=dict)
    asked: int = 0
    proposed: int = 0
    refused: int = 0
    rescued: int = 0
    model_us: float = 0.0
    constraint_us: float = 0.0
    #: The constraint, for each question to the model.
    steps_us: list[float] = field(default_factory=list)


def decode(model: Model, batch: Batch, canvas: Sequence[Slot], eos: Sequence[int], options: Options) -> Decoded:
    """Fills the holes of a canvas. `eos` are the tokens behind which nothing stands; the first fills up."""
    if options.method not in METHODS:
        raise ValueError(f"no method is called {options.method}; known: {', '.join(METHODS)}")
    run = _Run(model, batch, list(canvas), list(eos), options)
    run.fill()
    return run.decoded


class _Run:
    def __init__(self, model: Model, batch: Batch, canvas: list[Slot], eos: list[int], options: Options) -> None:
        self.model, self.batch, self.eos, self.options = model, batch, eos, options
        self.canvas = canvas
        self.decoded = Decoded(canvas)
        self.random = random.Random(options.seed)

    def fill(self) -> None:
        size = self.options.block or max(len(self.canvas), 1)
        n_blocks = -(-len(self.canvas) // size) or 1
        steps = max(self.options.steps // n_blocks, 1)
        for first in range(0, len(self.canvas), size):
            for step in range(len(self.canvas)):
                holes = [
                    slot for slot in range(first, min(first + size, len(self.canvas))) if self.canvas[slot] is None
                ]
                if not holes:
                    break
                if not self.step(holes, -(-len(holes) // max(steps - step, 1))):
                    self.decoded.stuck = True
                    return

    def step(self, within: list[int], quota: int) -> int:
        """One question to the model; how many slots were filled."""
        begun = time.perf_counter()
        holes = [slot for slot, token in enumerate(self.canvas) if token is None]
        rows = self.model.rows(self.canvas, LISTED, self.decoded.asked)
        self.decoded.model_us += (time.perf_counter() - begun) * 1e6
        self.decoded.asked += 1
        begun = time.perf_counter()
        listed = dict(zip(holes, rows, strict=True))
        n_kept = self.keep(listed, within, quota)
        micros = (time.perf_counter() - begun) * 1e6
        self.decoded.constraint_us += micros
        self.decoded.steps_us.append(round(micros, 1))
        return n_kept

    def keep(self, listed: dict[int, list[tuple[int, float]]], within: list[int], quota: int) -> int:
        method = self.options.method
        if method == "best":
            return self.take_best(listed, within, quota)
        left = {slot: list(row) for slot, row in listed.items() if slot in set(within)}
        if method == "exact":
            self.restrict(left)
        n_kept, n_refused = 0, 0
        while n_kept < quota:
            proposals = self.propose(left, quota - n_kept)
            if not proposals:
                break
            for (slot, token, log_prob), kept in zip(proposals, self.judge(proposals), strict=True):
                self.decoded.proposed += 1
                left[slot] = [pair for pair in left[slot] if pair[0] != token]
                # An EOS that was kept fills what stands behind it.
                if self.canvas[slot] is not None:
                    continue
                if kept:
                    self.put(slot, token, log_prob)
                    n_kept += 1
                else:
                    self.decoded.refused += 1
                    n_refused += 1
            if n_refused > REFUSALS:
                break
        if n_kept == 0 and method in ("exact", "compatible"):
            return self.take_best(listed, within, quota)
        return n_kept

    def restrict(self, left: dict[int, list[tuple[int, float]]]) -> None:
        """Takes away what is certainly not admissible."""
        answer = self.batch.canvas(self.canvas, ["admissible"])
        masks = answer.get("admissible")
        if masks is None:
            return
        holes = [slot for slot, token in enumerate(self.canvas) if token is None]
        for slot, mask in zip(holes, masks, strict=True):
            if slot in left:
                allowed = set(mask)
                left[slot] = [pair for pair in left[slot] if pair[0] in allowed]

    def propose(self, left: dict[int, list[tuple[int, float]]], quota: int) -> list[tuple[int, int, float]]:
        """The surest tokens of holes, one a hole."""
        drawn = []
        for slot, row in left.items():
            if row and self.canvas[slot] is None:
                token, log_prob = self.draw(row)
                drawn.append((slot, token, log_prob))
        drawn.sort(key=lambda one: (-one[2], one[0]))
        return drawn[:quota]

    def draw(self, row: list[tuple[int, float]]) -> tuple[int, float]:
        if self.options.temperature == 0:
            return row[0]
        highest = row[0][1]
        weights = [2.718281828459045 ** ((pair[1] - highest) / self.options.temperature) for pair in row]
        return self.random.choices(row, weights)[0]

    def judge(self, proposals: list[tuple[int, int, float]]) -> list[bool]:
        method = self.options.method
        if method == "none":
            return [True] * len(proposals)
        pairs = [[slot, token] for slot, token, _ in proposals]
        extra = {} if method in ("exact", "compatible") else {"method": method, "seed": self.options.seed}
        answer = self.batch.canvas(self.canvas, ["compatible"], proposals=pairs, **extra)
        return [kept is True for kept in answer["compatible"]]

    def take_best(self, listed: dict[int, list[tuple[int, float]]], within: list[int], quota: int) -> int:
        """The surest tokens of the best completion."""
        weights = [[list(pair) for pair in listed[slot]] for slot in sorted(listed)]
        answer = self.batch.canvas(self.canvas, ["best", "witness"], log_probs=weights)
        best, witness = answer.get("best"), answer.get("witness")
        tokens = best["tokens"] if best else witness
        if tokens is None:
            return 0
        floor = {slot: row[-1][1] - 10 for slot, row in listed.items()}
        given = {slot: dict(listed[slot]) for slot in within}
        order = sorted(within, key=lambda slot: -given[slot].get(tokens[slot], floor[slot]))
        n_kept = 0
        for slot in order[:quota]:
            if self.canvas[slot] is None:
                self.put(slot, tokens[slot], given[slot].get(tokens[slot], floor[slot]), tail=False)
                self.decoded.rescued += self.options.method != "best"
                n_kept += 1
        return n_kept

    def put(self, slot: int, token: int, log_prob: float, tail: bool = True) -> None:
        self.canvas[slot] = token
        self.decoded.log_probs[slot] = log_prob
        if token in self.eos and tail:
            for behind in range(slot + 1, len(self.canvas)):
                if self.canvas[behind] is None:
                    self.canvas[behind] = self.eos[0]
