"""One generation: the loop is that of the package (`anygram.Decoder`), here is what is told about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import anygram
from anygram.diffusion import WITH_COMPLETION, completion

METHODS = (*anygram.Decoder.STRATEGIES, WITH_COMPLETION)


class Model(Protocol):
    """What fills canvases. The prompt is its own business."""

    #: What stands in open slots: a mask token, or "noise".
    open_slots: Any
    #: The length of a row.
    vocabulary_size: int

    def __call__(self, view: anygram.View) -> Any:
        """Natural log-probabilities of the slots that are wanted, float32."""
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
class Outcome:
    #: Token ids, and None where a slot was left open.
    canvas: list[int | None]
    stuck: bool
    #: The text that was drawn from the intersection because the run was stuck.
    completion: list[int] | None
    #: Of each slot that was filled what the model gave its token in the step it was kept in.
    log_probs: dict[int, float]
    asked: int
    proposed: int
    refused: int
    recovered: int
    rescued: int
    model_us: float
    constraint_us: float
    #: The constraint, for each question to the model.
    steps_us: list[float] = field(default_factory=list)


def decode(
    constraint: anygram.Constraint, model: Model, canvas: list[int | None], options: Options
) -> Outcome:
    """Fills the holes of a canvas."""
    recorded = _Recorded(model)
    completes = options.method == WITH_COMPLETION
    strategy = "intersection" if completes else options.method
    decoded = anygram.Decoder(constraint, strategy).decode(
        anygram.Canvas(canvas),
        recorded,
        open_slots=model.open_slots,
        vocabulary_size=model.vocabulary_size,
        steps=options.steps,
        block=options.block,
        temperature=options.temperature,
        seed=options.seed,
    )
    filled = [slot if isinstance(slot, int) else None for slot in decoded.canvas.slots]
    recorded.look(filled, set())
    events = decoded.events
    proposed = [event for event in events if event["event"] == "proposed"]
    why = [event["why"] for event in events if event["event"] == "filled"]
    model_us, constraint_us = decoded.micros
    return Outcome(
        canvas=filled,
        stuck=decoded.is_stuck,
        completion=completion(decoded, constraint, options.seed) if completes else None,
        log_probs=recorded.log_probs,
        asked=decoded.n_asked,
        proposed=len(proposed),
        refused=decoded.n_refused,
        recovered=why.count("recovery"),
        rescued=why.count("rescue"),
        model_us=model_us,
        constraint_us=constraint_us,
        steps_us=_by_step(events),
    )


def _by_step(events: list[dict[str, Any]]) -> list[float]:
    """What the constraint took, for each question to the model."""
    steps: list[float] = []
    for event in events:
        if event["event"] == "asked":
            steps.append(0.0)
        elif steps:
            steps[-1] += event["micros"]
    return [round(micros, 1) for micros in steps]


class _Recorded:
    """A model, and what it gave the tokens that were kept: of the last answer, when the next one is
    wanted."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.log_probs: dict[int, float] = {}
        self.wanted: list[int] = []
        self.rows: Any = None

    def __call__(self, view: anygram.View) -> Any:
        self.look(view.tokens, set(view.wanted))
        self.wanted = view.wanted
        self.rows = self.model(view)
        return self.rows

    def look(self, tokens: list[int] | list[int | None], still_open: set[int]) -> None:
        """Notes the slots that were filled since the last answer."""
        for row, slot in enumerate(self.wanted):
            token = tokens[slot]
            if slot not in still_open and token is not None:
                self.log_probs[slot] = float(self.rows[row][token])
